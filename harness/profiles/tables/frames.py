"""A profile as pandas frames: one row per build, function, cause, line, request or thread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.errors import UsageError
from harness.profiles.answer.groups import groups
from harness.profiles.cache_use import cold_seconds, requests_of, saved_s
from harness.profiles.causes.registry import BLAMELESS
from harness.profiles.model import call_site_of
from harness.profiles.names import frame_text
from harness.profiles.pieces import written_ns
from harness.profiles.recorded import Recorded
from harness.profiles.tables.builds import DONE, SECONDS, builds, framed
from harness.profiles.totals import PARTS, Total, totals
from harness.watch import events

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
    found = _sums(builds(profile), _FUNCTION)
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
    kinds = {name: "str" for name in _FUNCTION} | {"line": "int64"}
    visits = framed(rows, {**kinds, "visits": "int64", "visit_s": "float64"})
    visits = visits.groupby(_FUNCTION, sort=False).sum().reset_index()
    columns = {str(name): str(kind) for name, kind in found.dtypes.items()}
    # A function that was built before recording began may have visits and no build.
    found = found.merge(visits, how="outer", on=_FUNCTION, sort=False)
    first = ("first_at_s", "first_call_s")
    numbers = [name for name, kind in columns.items() if kind != "str" and name not in first]
    numbers += ["visits", "visit_s"]
    found[numbers] = found[numbers].fillna(0)
    found["causes"] = found["causes"].fillna("")
    found = found.astype({**columns, "visits": "int64", "visit_s": "float64"})
    found = found.sort_values("build_s", ascending=False, kind="stable")
    return found.reset_index(drop=True)


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
    text = ("function", "through", "origin", "cause", "argument")
    columns = {
        **dict.fromkeys(text, "str"),
        **{"builds": "int64", "build_s": "float64", "n_values": "int64"},
        **dict.fromkeys(("values", "call_sites", "sentence", "remedy"), "str"),
    }
    return framed(rows, columns)


def sites(profile: Recorded) -> pd.DataFrame:
    """Return a row per line that builds were asked for from; the dearest first.

    `sampled_s` is what all threads spent there outside builds, as far as it was sampled.
    """
    found = _sums(builds(profile), _SITE)
    found["functions"] = found.pop("functions_text")
    sampled: dict[str, float] = {}
    for process in profile.processes:
        places = {
            number: frame_text(call_site_of(stack.frames), process.started.cwd)
            for number, stack in process.stacks.items()
        }
        for line in process.of(events.Samples):
            for _, stack, _, count in line.counts:
                place = places.get(stack, "")
                sampled[place] = sampled.get(place, 0.0) + count * line.interval_ns / 1e9
    found["sampled_s"] = [sampled.get(place, 0.0) for place in found["call_site"]]
    return found


def eager(profile: Recorded) -> pd.DataFrame:
    """Return a row per line that called JAX's own functions outside jit; the dearest first."""
    rows = builds(profile)
    found = _sums(rows[rows["origin"] == "jax"], _SITE)
    found["functions"] = found.pop("functions_text")
    return found


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
        for _, request in requests_of(profile.builds)
    ]
    seconds = ("request_s", "compile_s", "load_s", "write_s", "saved_s")
    columns = {
        **dict.fromkeys(("outcome", "reason"), "str"),
        **dict.fromkeys(seconds, "float64"),
        "entry_bytes": "int64",
        "module": "str",
    }
    requests = framed(rows, columns)
    grouped = requests.groupby(["outcome", "reason"], sort=False)
    found = grouped.agg(
        requests=("module", "size"),
        modules=("module", "nunique"),
        **{name: (name, "sum") for name in (*seconds, "entry_bytes")},
        saved_known=("saved_s", "count"),
    ).reset_index()
    # A sum of nothing known is not known.
    found.loc[found["saved_known"] == 0, "saved_s"] = math.nan
    found = found.sort_values("requests", ascending=False, kind="stable")
    return found.reset_index(drop=True)


def time(profile: Recorded) -> pd.DataFrame:
    """Return a row per part of the wall time, of the run and of each process."""
    rows = [row for total in totals(profile) if total.scope != "thread" for row in _parts(total)]
    columns = {
        **dict.fromkeys(("scope", "process", "part"), "str"),
        **dict.fromkeys(("seconds", "low", "high", "share"), "float64"),
        "meaning": "str",
    }
    return framed(rows, columns)


def _parts(total: Total) -> Iterator[dict[str, Any]]:
    for part, meaning in PARTS.items():
        low, high = total.interval(part) if total.samples.get(part) else (math.nan, math.nan)
        yield {
            "scope": total.scope,
            "process": total.process,
            "part": part,
            "seconds": total.seconds[part],
            "low": low,
            "high": high,
            "share": total.seconds[part] / total.wall_s if total.wall_s else math.nan,
            "meaning": meaning,
        }


def threads(profile: Recorded) -> pd.DataFrame:
    """Return a row per thread that built something or was sampled, with the parts of its time."""
    names = [f"{part}_s" for part in PARTS]
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
    columns = {
        **{"process": "str", "thread": "int64", "main": "str"},
        **dict.fromkeys(("wall_s", "build_s", *names), "float64"),
        "samples": "int64",
    }
    return framed(rows, columns)


_SECONDS = ("trace_s", "lower_s", "compile_s", "load_s")


@dataclass(frozen=True)
class Table:
    """A table of a profile."""

    make: Callable[[Recorded], pd.DataFrame]
    main: tuple[str, ...]
    """Columns that a terminal shows."""
    dispensable: tuple[str, ...]
    """Those of them that are left out where a line is too short, the first ones first."""


TABLES = {
    "time": Table(
        time, ("process", "part", "seconds", "low", "high", "share", "meaning"), ("low", "high")
    ),
    "functions": Table(
        functions,
        (
            *("function", "builds", "traces", "lowers", "compiles", "loads", "build_s", *_SECONDS),
            *("first_call_s", "again", "again_s", "visits", "n_call_sites", "causes"),
        ),
        (
            *("n_call_sites", "first_call_s", "load_s", "lower_s", "trace_s", "visits", "lowers"),
            *("loads", "traces", "compile_s", "again"),
        ),
    ),
    "builds": Table(
        builds,
        (
            *("begin_s", "process", "function", "call_site", "build_s", *_SECONDS, "other_s"),
            *("outcome", "reason", "cause", "argument", "before", "after"),
        ),
        (
            *("other_s", "outcome", "lower_s", "trace_s", "reason", "load_s", "compile_s"),
            *("process", "before", "after"),
        ),
    ),
    "causes": Table(
        causes,
        (
            *("function", "cause", "argument", "builds", "build_s", "n_values", "values"),
            *("call_sites", "remedy"),
        ),
        ("n_values", "call_sites", "values"),
    ),
    "sites": Table(
        sites,
        (
            *("call_site", "site_function", "builds", "compiles", "loads", "build_s", *_SECONDS),
            *("other_s", "sampled_s", "functions", "causes"),
        ),
        (
            *("other_s", "load_s", "lower_s", "trace_s", "loads", "compile_s", "sampled_s"),
            *("site_function", "compiles"),
        ),
    ),
    "cache": Table(
        cache,
        (
            *("outcome", "reason", "requests", "modules", "compile_s", "load_s", "write_s"),
            *("saved_s", "entry_bytes"),
        ),
        ("modules", "load_s", "write_s", "entry_bytes"),
    ),
    "eager": Table(
        eager,
        ("call_site", "site_function", "builds", "compiles", "build_s", "functions"),
        ("site_function",),
    ),
    "threads": Table(
        threads,
        (
            *("process", "thread", "main", "wall_s", "build_s", *_SECONDS, "other_s", "jax_s"),
            *("library_s", "program_s", "unattributed_s", "samples"),
        ),
        (
            *("unattributed_s", "load_s", "other_s", "lower_s", "trace_s", "samples", "library_s"),
            *("jax_s", "compile_s", "process"),
        ),
    ),
}


def _sums(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return a row per value of `by`, the dearest first."""
    rows = rows[rows["build"] > 0].assign(
        first_call_s=rows["end_s"] - rows["begin_s"],
        again_s=rows["build_s"].where(~rows["cause"].isin(BLAMELESS), 0.0),
        again=(~rows["cause"].isin(BLAMELESS)).astype("int64"),
    )
    found = (
        rows.groupby(by, sort=False)
        .agg(
            builds=("build", "size"),
            **{name: (name, "sum") for name in (*DONE, "build_s", *SECONDS, "other_s")},
            first_at_s=("begin_s", "first"),
            first_call_s=("first_call_s", "first"),
            again=("again", "sum"),
            again_s=("again_s", "sum"),
            functions_text=("function", _counted),
            n_call_sites=("call_site", "nunique"),
            causes=("cause", _counted),
        )
        .reset_index()
        .sort_values("build_s", ascending=False, kind="stable")
        .reset_index(drop=True)
    )
    dropped = ["functions_text"] if "function" in by else ["n_call_sites"]
    found = found.drop(columns=dropped)
    counts = ("builds", *DONE, "again", *(["n_call_sites"] if "function" in by else []))
    texts_ = ("causes", *([] if "function" in by else ["functions_text"]))
    return found.astype({**dict.fromkeys(counts, "int64"), **dict.fromkeys(texts_, "str")})


def _counted(values: Iterable[str]) -> str:
    """Return texts with how often each is there: `shape ×3, dtype`."""
    counts = Counter(filter(None, values))
    return ", ".join(
        f"{value} ×{count}" if count > 1 else value for value, count in counts.most_common()
    )
