"""The table of builds, and how a frame is made of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness.cache.saved import cold_seconds, saved_s
from harness.profiles.causes.cause import Cause
from harness.profiles.figures import requests_of
from harness.profiles.names import Names, around_text
from harness.profiles.pieces import OTHER, STAGES
from harness.watch.events import Build, Function

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

DONE = ("traces", "lowers", "compiles", "loads")
FUNCTION = ["function", "qualname", "through", "origin", "file", "line"]
SECONDS = tuple(f"{stage}_s" for stage in STAGES)
_WHOLE = {
    *("pid", "thread", "build", "line", "builds", "again", "visits", "samples"),
    *("n_values", "n_call_sites", "requests", "modules", "saved_known", *DONE),
}
_REAL = {
    *("seconds", "low", "high", "share", "flops", "entry_bytes", "code_bytes"),
    *("argument_bytes", "output_bytes", "temporary_bytes"),
}


def type_of(column: str) -> str:
    """Return the type of a column, which follows from its name in whatever table."""
    if column in _WHOLE:
        return "int64"
    return "float64" if column in _REAL or column.endswith("_s") else "str"


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
    """Return what hits saved, as far as it is known."""
    saved = [saved_s(request, cold) for request in line.requests]
    known = [seconds for seconds in saved if seconds is not None]
    return sum(known) if known else math.nan
