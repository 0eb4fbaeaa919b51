"""A profile as pandas frames: one row per build, function, cause, line, request or thread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness.cache.saved import cold_seconds, saved_s
from harness.errors import UsageError
from harness.jaxhooks import events
from harness.jaxhooks.events import Build, Function
from harness.profiles.causes.cause import Cause
from harness.profiles.causes.kinds import BLAMELESS
from harness.profiles.figures import groups, requests_of
from harness.profiles.model import call_site_of
from harness.profiles.names import Names, around_text, line_text
from harness.profiles.pieces import OTHER, STAGES, written_ns
from harness.profiles.totals import PARTS, totals

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

DONE = ("traces", "lowers", "compiles", "loads")
FUNCTION = ["function", "qualname", "through", "origin", "file", "line"]
SECONDS = tuple(f"{stage}_s" for stage in STAGES)
_WHOLE = {"pid", "thread", "build", "line", "builds", "again", "visits", "samples", *DONE}
_WHOLE |= {"n_values", "n_call_sites", "requests", "modules", "saved_known"}
_REAL = {"seconds", "low", "high", "share", "flops"}


def type_of(column: str) -> str:
    """Return the type of a column, which follows from its name in whatever table."""
    if column in _WHOLE:
        return "int64"
    return "float64" if column in _REAL or column.endswith(("_s", "_bytes")) else "str"


def framed(columns: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
    """Return a frame of columns, each of the type that its name says."""
    return pd.DataFrame(
        {name: pd.Series(list(values), dtype=type_of(name)) for name, values in columns.items()}
    )


def of_functions(functions: Sequence[Function]) -> dict[str, list[Any]]:
    """Return the columns that tell functions apart, of a row each."""
    rest = {name: [getattr(one, name) for one in functions] for name in FUNCTION[3:]}
    return {
        "function": [one.name for one in functions],
        "qualname": [one.qualname for one in functions],
        "through": [around_text(one.around) for one in functions],
        **rest,
    }


def places(frame: pd.DataFrame) -> pd.Series[str]:
    """Return, for the function of each row, :meth:`.Names.place`."""
    columns = frame[["function", "file", "line"]].set_axis(["name", "file", "line"], axis=1)
    rows: list[Any] = list(columns.itertuples())
    names = Names(rows)
    return pd.Series([names.place(row) for row in rows], frame.index, "str")


def builds(profile: Recorded) -> pd.DataFrame:
    """Return a row per build, in the order in which they began; unfinished ones at the end."""
    return profile.once("rows", lambda: framed(_columns(profile))).copy(deep=False)


def _columns(profile: Recorded) -> dict[str, list[Any]]:
    rows = (*profile.builds, *profile.unfinished)
    lines = [one.line for one in rows]
    causes = [Cause("") if one.going_on else profile.cause_of(one) for one in rows]
    cold, begin_ns = cold_seconds(requests_of(profile.builds)), profile.begin_ns
    stages = {
        f"{stage}_s": [one.stage_ns(stage) / 1e9 for one in rows] for stage in (*STAGES, OTHER)
    }

    def requests(name: str) -> list[str]:
        """Return what the compile requests of each build have, each value once."""
        each = ([getattr(request, name) for request in line.requests] for line in lines)
        return [", ".join(dict.fromkeys(filter(None, values))) for values in each]

    def program(name: str) -> list[float]:
        """Return a number of each executable; NaN where there is none."""
        return [getattr(one.program, name) if one.program else math.nan for one in lines]

    return {
        "process": [one.process.name for one in rows],
        "pid": [one.process.started.pid for one in rows],
        "thread": [line.thread for line in lines],
        "build": [line.id for line in lines],
        "kind": [line.kind for line in lines],
        **of_functions([one.function for one in rows]),
        "call_site": [one.site for one in rows],
        "site_function": [one.call_site.function for one in rows],
        "test": [line.test for line in lines],
        "begin_s": [(line.begin_ns - begin_ns) / 1e9 for line in lines],
        "end_s": [(line.end_ns - begin_ns) / 1e9 for line in lines],
        "build_s": [one.build_ns / 1e9 for one in rows],
        **stages,
        "xla_s": [sum(one.compile_ns for one in line.requests) / 1e9 for line in lines],
        "own_s": [line.own_ns / 1e9 for line in lines],
        "traces": [one.times("trace") for one in rows],
        "lowers": [one.times("lower") for one in rows],
        "compiles": [one.compiles for one in rows],
        "loads": [one.hits for one in rows],
        "outcome": requests("outcome"),
        "reason": requests("reason"),
        "key": requests("key"),
        "cause": [cause.kind for cause in causes],
        "argument": [cause.argument for cause in causes],
        "before": [cause.values[0] for cause in causes],
        "after": [cause.values[1] for cause in causes],
        "remedy_id": [cause.remedy.id if cause.remedy else "" for cause in causes],
        "saved_s": [_saved_s(line, cold) for line in lines],
        "entry_bytes": [
            sum(one.entry_bytes for one in line.requests) or math.nan for line in lines
        ],
        "code_bytes": program("code_bytes"),
        "argument_bytes": program("argument_bytes"),
        "output_bytes": program("output_bytes"),
        "temporary_bytes": program("temp_bytes"),
        "flops": [flops or math.nan for flops in program("flops")],
        "fingerprint": [line.program.fingerprint if line.program else "" for line in lines],
        "error": [line.error for line in lines],
    }


def _saved_s(line: Build, cold: dict[str, float]) -> float:
    saved = [saved_s(request, cold) for request in line.requests]
    measured = [seconds for seconds in saved if seconds is not None]
    return sum(measured) if measured else math.nan


_SITE = ["call_site", "site_function"]


def frame(profile: Recorded, table: str = "builds") -> pd.DataFrame:
    """Return one of the tables; docs/profile.md has their columns.

    Raises:
        UsageError: if there is no such table.
    """
    if table not in TABLES:
        raise UsageError(f"A table {table!r} is not known; there are {', '.join(TABLES)}.")
    return TABLES[table](profile)


def functions(profile: Recorded) -> pd.DataFrame:
    """Return a row per function, by name and place in the source; the slowest first."""
    called = [
        (function, line)
        for process in profile.processes
        for line in process.of(events.Visits)
        if (function := process.functions.get(line.function)) is not None
    ]
    visits = framed(
        {
            **of_functions([function for function, _ in called]),
            "visits": [line.count for _, line in called],
            "visit_s": [line.seconds for _, line in called],
        }
    )
    visits = visits.groupby(FUNCTION, sort=False).sum().reset_index()
    # A function that was built before recording began may have visits and no build.
    table = _sums(builds(profile), FUNCTION).merge(visits, how="outer", on=FUNCTION, sort=False)
    lacking = {
        name: "" if type_of(name) == "str" else 0
        for name in map(str, table)
        if not name.startswith("first_")
    }
    return _slowest_first(table.fillna(lacking))


def causes(profile: Recorded) -> pd.DataFrame:
    """Return a row per function, cause and argument; the slowest first."""
    by_cause = groups(profile, profile.builds)
    return framed(
        {
            **of_functions([group.function for group in by_cause]),
            "cause": [group.cause.kind for group in by_cause],
            "argument": [group.cause.argument for group in by_cause],
            "builds": [len(group.builds) for group in by_cause],
            "build_s": [group.seconds for group in by_cause],
            "n_values": [len(group.values) for group in by_cause],
            "values": [", ".join(group.values) for group in by_cause],
            "call_sites": [_counted(built.site for built in group.builds) for group in by_cause],
            "remedy_id": [g.cause.remedy.id if g.cause.remedy else "" for g in by_cause],
        }
    )


def sites(profile: Recorded) -> pd.DataFrame:
    """Return a row per line that builds were asked for from; the slowest first.

    `sampled_s` is what all threads spent there outside builds, as far as it was sampled.
    """
    sampled: Counter[str] = Counter()
    for process in profile.processes:
        sites = ((number, call_site_of(stack.frames)) for number, stack in process.stacks.items())
        cwd = process.started.cwd
        places = {number: line_text(site.file, site.line, cwd) for number, site in sites}
        for line in process.of(events.Samples):
            for _, stack, _, count in line.counts:
                sampled[places.get(stack, "")] += count * line.interval_ns
    table = _sums(builds(profile), _SITE)
    table["sampled_s"] = [sampled[place] / 1e9 for place in table["call_site"]]
    return table


def eager(profile: Recorded) -> pd.DataFrame:
    """Return a row per line that called JAX's own functions outside jit; the slowest first."""
    rows = builds(profile)
    return _sums(rows[rows["origin"] == "jax"], _SITE)


def cache(profile: Recorded) -> pd.DataFrame:
    """Return a row per outcome of compile requests and reason; the most frequent first."""
    cold = cold_seconds(requests_of(profile.builds))
    asked = list(requests_of(profile.builds))
    saved = [saved_s(request, cold) for request in asked]
    loads = [request.load_ns if request.outcome == "hit" else 0 for request in asked]
    sums: dict[str, list[Any]] = {
        "request_s": [request.request_ns / 1e9 for request in asked],
        "compile_s": [request.compile_ns / 1e9 for request in asked],
        "load_s": [load_ns / 1e9 for load_ns in loads],
        "write_s": [written_ns(request) / 1e9 for request in asked],
        "saved_s": [math.nan if seconds is None else seconds for seconds in saved],
        "entry_bytes": [request.entry_bytes for request in asked],
    }
    texts = ("outcome", "reason", "module")
    requests = framed({**{name: [getattr(one, name) for one in asked] for name in texts}, **sums})
    table = (
        requests.groupby(["outcome", "reason"], sort=False)
        .agg(
            requests=("module", "size"),
            modules=("module", "nunique"),
            **{name: (name, "sum") for name in sums},
            saved_known=("saved_s", "count"),
        )
        .reset_index()
        .astype({"entry_bytes": "int64"})
    )
    # A sum of nothing known is not known.
    table.loc[table["saved_known"] == 0, "saved_s"] = math.nan
    table = table.sort_values("requests", ascending=False, kind="stable")
    return table.reset_index(drop=True)


def time(profile: Recorded) -> pd.DataFrame:
    """Return a row per part of the wall time, of the run and of each process."""
    rows = [(total, part) for total in totals(profile) if total.scope != "thread" for part in PARTS]
    intervals = [
        total.interval(part) if total.samples.get(part) else (math.nan, math.nan)
        for total, part in rows
    ]
    return framed(
        {
            "scope": [total.scope for total, _ in rows],
            "process": [total.process for total, _ in rows],
            "part": [part for _, part in rows],
            "seconds": [total.seconds[part] for total, part in rows],
            "low": [low for low, _ in intervals],
            "high": [high for _, high in intervals],
            "share": [
                total.seconds[part] / total.wall_s if total.wall_s else math.nan
                for total, part in rows
            ],
        }
    )


def threads(profile: Recorded) -> pd.DataFrame:
    """Return a row per thread that built something or was sampled, with the parts of its time."""
    by_thread = [total for total in totals(profile) if total.scope == "thread"]
    return framed(
        {
            "process": [total.process for total in by_thread],
            "thread": [total.thread for total in by_thread],
            "main": ["yes" if total.main else "no" for total in by_thread],
            "wall_s": [total.wall_s for total in by_thread],
            "build_s": [total.build_s for total in by_thread],
            **{f"{part}_s": [total.seconds[part] for total in by_thread] for part in PARTS},
            "samples": [sum(total.samples.values()) for total in by_thread],
        }
    )


def _sums(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return a row per function or site, the slowest first."""
    again = ~rows["cause"].isin(BLAMELESS)
    rows = rows.assign(
        first_call_s=rows["end_s"] - rows["begin_s"],
        again_s=rows["build_s"].where(again, 0.0),
        again=again.astype("int64"),
    )
    a_function = by == FUNCTION
    if not a_function:
        rows["function"] += places(rows)
    columns = {
        "builds": ("build", "size"),
        **{name: (name, "sum") for name in (*DONE, "build_s", *SECONDS, "other_s")},
        "first_at_s": ("begin_s", "first"),
        "first_call_s": ("first_call_s", "first"),
        "again": ("again", "sum"),
        "again_s": ("again_s", "sum"),
        **({"n_call_sites": ("call_site", "nunique")} if a_function else {}),
        "causes": ("cause", _counted),
        **({} if a_function else {"functions": ("function", _counted)}),
    }
    ended = rows[rows["build"] > 0]
    return _slowest_first(ended.groupby(by, sort=False).agg(**columns).reset_index())


def _slowest_first(table: pd.DataFrame) -> pd.DataFrame:
    table = table.astype({name: type_of(name) for name in map(str, table)})
    return table.sort_values("build_s", ascending=False, kind="stable").reset_index(drop=True)


def _counted(values: Iterable[str]) -> str:
    """Return texts with how often each is there: `shape ×3, dtype`."""
    counts = Counter(filter(None, values))
    return ", ".join(
        f"{value} ×{count}" if count > 1 else value for value, count in counts.most_common()
    )


TABLES: dict[str, Callable[[Recorded], pd.DataFrame]] = {
    "time": time,
    "functions": functions,
    "builds": builds,
    "causes": causes,
    "sites": sites,
    "cache": cache,
    "eager": eager,
    "threads": threads,
}
"""By name: how each is made."""
