"""A profile as pandas frames: one row per build, function, cause, line, request or thread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from harness.errors import UsageError
from harness.profiles.causes.registry import BLAMELESS
from harness.profiles.figures import cold_seconds, groups, requests_of, saved_s
from harness.profiles.model import call_site_of
from harness.profiles.names import frame_text
from harness.profiles.pieces import written_ns
from harness.profiles.tables.builds import DONE, SECONDS, builds, framed, type_of
from harness.profiles.totals import PARTS, totals
from harness.watch import events

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

_FUNCTION = ["function", "qualname", "through", "origin", "file", "line"]
_SITE = ["call_site", "site_function"]


def frame(profile: Recorded, table: str = "builds") -> pd.DataFrame:
    """Return one of the tables; docs/profile.md has their columns.

    Raises:
        UsageError: if there is no such table.
    """
    if table not in TABLES:
        raise UsageError(f"A table {table!r} is not known; there are {', '.join(TABLES)}.")
    return TABLES[table].make(profile)


def functions(profile: Recorded) -> pd.DataFrame:
    """Return a row per function, by name and place in the source; the dearest first."""
    rows = [
        {
            "function": function.name,
            **{name: getattr(function, name) for name in _FUNCTION[1:]},
            "visits": line.count,
            "visit_s": line.seconds,
        }
        for process in profile.processes
        for line in process.of(events.Visits)
        if (function := process.functions.get(line.function)) is not None
    ]
    visits = framed(rows, (*_FUNCTION, "visits", "visit_s"))
    visits = visits.groupby(_FUNCTION, sort=False).sum().reset_index()
    # A function that was built before recording began may have visits and no build.
    found = _sums(builds(profile), _FUNCTION).merge(visits, how="outer", on=_FUNCTION, sort=False)
    lacking = {
        name: "" if type_of(name) == "str" else 0
        for name in map(str, found)
        if not name.startswith("first_")
    }
    return _dearest(found.fillna(lacking))


def causes(profile: Recorded) -> pd.DataFrame:
    """Return a row per function, cause and argument; the dearest first."""
    rows = [
        {
            "function": group.function.name,
            "through": group.function.through,
            "origin": group.function.origin,
            "cause": group.cause.kind,
            "argument": group.cause.argument,
            "builds": len(group.builds),
            "build_s": group.seconds,
            "n_values": len(group.values),
            "values": ", ".join(group.values),
            "call_sites": _counted(built.site for built in group.builds),
            "sentence": group.cause.sentence,
            "remedy": group.cause.remedy,
        }
        for group in groups(profile, profile.builds)
    ]
    columns = (
        *("function", "through", "origin", "cause", "argument", "builds", "build_s", "n_values"),
        *("values", "call_sites", "sentence", "remedy"),
    )
    return framed(rows, columns)


def sites(profile: Recorded) -> pd.DataFrame:
    """Return a row per line that builds were asked for from; the dearest first.

    `sampled_s` is what all threads spent there outside builds, as far as it was sampled.
    """
    sampled: Counter[str] = Counter()
    for process in profile.processes:
        places = {
            number: frame_text(call_site_of(stack.frames), process.started.cwd)
            for number, stack in process.stacks.items()
        }
        for line in process.of(events.Samples):
            for _, stack, _, count in line.counts:
                sampled[places.get(stack, "")] += count * line.interval_ns
    found = _sums(builds(profile), _SITE)
    found["sampled_s"] = [sampled[place] / 1e9 for place in found["call_site"]]
    return found


def eager(profile: Recorded) -> pd.DataFrame:
    """Return a row per line that called JAX's own functions outside jit; the dearest first."""
    rows = builds(profile)
    return _sums(rows[rows["origin"] == "jax"], _SITE)


def cache(profile: Recorded) -> pd.DataFrame:
    """Return a row per outcome of compile requests and reason; the most frequent first."""
    cold = cold_seconds(profile)
    rows = [
        {
            "outcome": request.outcome,
            "reason": request.reason,
            "request_s": request.request_ns / 1e9,
            "compile_s": request.compile_ns / 1e9,
            "load_s": request.load_ns / 1e9 if request.outcome == "hit" else 0.0,
            "write_s": written_ns(request) / 1e9,
            "saved_s": math.nan if (saved := saved_s(request, cold)) is None else saved,
            "entry_bytes": request.entry_bytes,
            "module": request.module,
        }
        for request in requests_of(profile.builds)
    ]
    sums = ("request_s", "compile_s", "load_s", "write_s", "saved_s", "entry_bytes")
    requests = framed(rows, ("outcome", "reason", *sums, "module"))
    found = (
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
    found.loc[found["saved_known"] == 0, "saved_s"] = math.nan
    found = found.sort_values("requests", ascending=False, kind="stable")
    return found.reset_index(drop=True)


def time(profile: Recorded) -> pd.DataFrame:
    """Return a row per part of the wall time, of the run and of each process."""
    rows = []
    for total in totals(profile):
        for part, meaning in PARTS.items() if total.scope != "thread" else ():
            seconds = total.seconds[part]
            low, high = total.interval(part) if total.samples.get(part) else (math.nan, math.nan)
            share = seconds / total.wall_s if total.wall_s else math.nan
            rows.append((total.scope, total.process, part, seconds, low, high, share, meaning))
    columns = ("scope", "process", "part", "seconds", "low", "high", "share", "meaning")
    return framed((dict(zip(columns, row, strict=True)) for row in rows), columns)


def threads(profile: Recorded) -> pd.DataFrame:
    """Return a row per thread that built something or was sampled, with the parts of its time."""
    rows = [
        {
            "process": total.process,
            "thread": total.thread,
            "main": "yes" if total.main else "no",
            "wall_s": total.wall_s,
            "build_s": total.build_s,
            **{f"{part}_s": seconds for part, seconds in total.seconds.items()},
            "samples": sum(total.samples.values()),
        }
        for total in totals(profile)
        if total.scope == "thread"
    ]
    parts = [f"{part}_s" for part in PARTS]
    return framed(rows, ("process", "thread", "main", "wall_s", "build_s", *parts, "samples"))


def _sums(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return a row per function or site, the dearest first."""
    again = ~rows["cause"].isin(BLAMELESS)
    rows = rows.assign(
        first_call_s=rows["end_s"] - rows["begin_s"],
        again_s=rows["build_s"].where(again, 0.0),
        again=again.astype("int64"),
    )
    of_functions = by == _FUNCTION
    columns = {
        "builds": ("build", "size"),
        **{name: (name, "sum") for name in (*DONE, "build_s", *SECONDS, "other_s")},
        "first_at_s": ("begin_s", "first"),
        "first_call_s": ("first_call_s", "first"),
        "again": ("again", "sum"),
        "again_s": ("again_s", "sum"),
        **({"n_call_sites": ("call_site", "nunique")} if of_functions else {}),
        "causes": ("cause", _counted),
        **({} if of_functions else {"functions": ("function", _counted)}),
    }
    ended = rows[rows["build"] > 0]
    return _dearest(ended.groupby(by, sort=False).agg(**columns).reset_index())


def _dearest(found: pd.DataFrame) -> pd.DataFrame:
    """Return rows in order, the dearest first, with columns of their types."""
    found = found.astype({name: type_of(name) for name in map(str, found)})
    return found.sort_values("build_s", ascending=False, kind="stable").reset_index(drop=True)


def _counted(values: Iterable[str]) -> str:
    """Return texts with how often each is there: `shape ×3, dtype`."""
    counts = Counter(filter(None, values))
    return ", ".join(
        f"{value} ×{count}" if count > 1 else value for value, count in counts.most_common()
    )


class ProfileTable(NamedTuple):
    """A table of a profile."""

    make: Callable[[Recorded], pd.DataFrame]
    about: str
    main: str
    """Columns that a terminal shows, as many as fit, from the first."""


TABLES = {
    "time": ProfileTable(
        time,
        "the wall time of the run and of each process, in parts that add up to it",
        "process part seconds share meaning low high",
    ),
    "functions": ProfileTable(
        functions,
        "a row per function: builds, stages, first call, later calls that were looked up",
        "function builds build_s causes again_s compiles compile_s again traces loads visits "
        "trace_s lowers lower_s load_s first_call_s n_call_sites",
    ),
    "builds": ProfileTable(
        builds,
        "a row per build: everything that is known of it",
        "begin_s function call_site build_s cause argument before after process compile_s load_s "
        "reason trace_s lower_s outcome other_s",
    ),
    "causes": ProfileTable(
        causes,
        "a row per function and cause",
        "function cause argument builds build_s remedy values call_sites n_values",
    ),
    "sites": ProfileTable(
        sites,
        "a row per line of code that builds were asked for from",
        "call_site builds build_s functions causes compiles site_function sampled_s compile_s "
        "loads trace_s lower_s load_s other_s",
    ),
    "cache": ProfileTable(
        cache,
        "what the persistent cache did: outcomes, reasons, seconds",
        "outcome reason requests compile_s saved_s entry_bytes load_s write_s modules",
    ),
    "eager": ProfileTable(
        eager,
        "lines that call JAX's own functions outside jit",
        "call_site builds compiles build_s functions site_function",
    ),
    "threads": ProfileTable(
        threads,
        "a row per thread, with the parts of its time",
        "process thread main wall_s build_s compile_s jax_s library_s program_s samples trace_s "
        "lower_s other_s load_s unattributed_s",
    ),
}
