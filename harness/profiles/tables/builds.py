"""The table of builds, and how a frame is made of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from harness.profiles.cache_use import cold_seconds, saved_s
from harness.profiles.model import Built
from harness.profiles.pieces import OTHER, STAGES
from harness.profiles.recorded import Recorded

SECONDS = tuple(f"{stage}_s" for stage in STAGES)
_CAUSE = ("argument", "before", "after")
DONE = ("traces", "lowers", "compiles", "loads")


def builds(profile: Recorded) -> pd.DataFrame:
    """Return a row per build, in the order in which they began; unfinished ones at the end."""
    return profile.once("rows", lambda: _rows(profile)).copy(deep=False)


def _rows(profile: Recorded) -> pd.DataFrame:
    cold = cold_seconds(profile)
    both = (*profile.builds, *profile.unfinished)
    return framed([_build(profile, built, cold) for built in both], _BUILD_COLUMNS)


_BUILD_COLUMNS = {
    **dict.fromkeys(("process",), "str"),
    **dict.fromkeys(("pid", "thread", "build"), "int64"),
    **dict.fromkeys(("kind", "function", "qualname", "through", "origin", "file"), "str"),
    "line": "int64",
    **dict.fromkeys(("call_site", "site_function", "test"), "str"),
    **dict.fromkeys(("begin_s", "end_s", "build_s", *SECONDS, "other_s", "xla_s"), "float64"),
    "own_s": "float64",
    **dict.fromkeys(DONE, "int64"),
    **dict.fromkeys(("outcome", "reason", "key"), "str"),
    **dict.fromkeys(("cause", *_CAUSE, "sentence", "remedy"), "str"),
    **dict.fromkeys(("saved_s", "entry_bytes"), "float64"),
    **dict.fromkeys(
        ("code_bytes", "argument_bytes", "output_bytes", "temporary_bytes", "flops"), "float64"
    ),
    **dict.fromkeys(("fingerprint", "error"), "str"),
}


def _build(profile: Recorded, built: Built, cold: dict[str, float]) -> dict[str, Any]:
    line, function, site = built.line, built.function, built.call_site
    cause = profile.cause_of(built) if line.id > 0 else None
    requests, program = line.requests, line.program
    spared = [saved_s(request, cold) for request in requests if request.outcome == "hit"]
    sizes = [request.entry_bytes for request in requests if request.entry_bytes]
    row: dict[str, Any] = {
        "process": built.process.name,
        "pid": built.process.started.pid,
        "thread": line.thread,
        "build": line.id,
        "kind": line.kind,
        "function": function.name,
        "qualname": function.qualname,
        "through": function.through,
        "origin": function.origin,
        "file": function.file,
        "line": function.line,
        "call_site": built.site,
        "site_function": site.function,
        "test": line.test,
        "begin_s": (line.begin_ns - profile.begin_ns) / 1e9,
        "end_s": (line.end_ns - profile.begin_ns) / 1e9,
        "build_s": built.build_ns / 1e9,
        **{f"{stage}_s": built.stage_ns(stage) / 1e9 for stage in (*STAGES, OTHER)},
        "xla_s": sum(request.compile_ns for request in requests) / 1e9,
        "own_s": line.own_ns / 1e9,
        "traces": built.times("trace"),
        "lowers": built.times("lower"),
        "compiles": built.compiles,
        "loads": built.hits,
        "outcome": _joined(request.outcome for request in requests),
        "reason": _joined(request.reason for request in requests),
        "key": _joined(request.key for request in requests),
        "saved_s": sum(known for known in spared if known is not None)
        if any(known is not None for known in spared)
        else math.nan,
        "entry_bytes": sum(sizes) if sizes else math.nan,
        "code_bytes": program.code_bytes if program else math.nan,
        "argument_bytes": program.argument_bytes if program else math.nan,
        "output_bytes": program.output_bytes if program else math.nan,
        "temporary_bytes": program.temp_bytes if program else math.nan,
        "flops": program.flops if program and program.flops else math.nan,
        "fingerprint": program.fingerprint if program else "",
        "error": line.error,
    }
    if cause is not None:
        row |= {
            "cause": cause.kind,
            **{name: getattr(cause, name) for name in (*_CAUSE, "sentence", "remedy")},
        }
    return row


def _joined(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, values)))


def framed(rows: Iterable[dict[str, Any]], columns: dict[str, str]) -> pd.DataFrame:
    """Return a frame of rows; what a row lacks is nothing: "", NaN or 0, by the column's type."""
    rows = list(rows)
    return pd.DataFrame(
        {
            name: pd.Series([row.get(name, _NOTHING[kind]) for row in rows], dtype=kind)
            for name, kind in columns.items()
        }
    )


_NOTHING = {"str": "", "float64": math.nan, "int64": 0}
"""What stands for nothing in a column of a type."""
