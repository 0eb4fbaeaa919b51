"""The table of builds, and how a frame is made of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness.profiles.causes.cause import Cause
from harness.profiles.figures import cold_seconds, saved_s
from harness.profiles.pieces import OTHER, STAGES

if TYPE_CHECKING:
    from harness.profiles.model import Built
    from harness.profiles.recorded import Recorded

DONE = ("traces", "lowers", "compiles", "loads")
SECONDS = tuple(f"{stage}_s" for stage in STAGES)
_WHOLE = {
    *("pid", "thread", "build", "line", "builds", "again", "visits", "samples"),
    *("n_values", "n_call_sites", "requests", "modules", "saved_known", *DONE),
}
_REAL = {
    *("seconds", "low", "high", "share", "flops", "entry_bytes", "code_bytes"),
    *("argument_bytes", "output_bytes", "temporary_bytes"),
}
NOTHING = {"str": "", "float64": math.nan, "int64": 0}
"""What stands for nothing in a column of a type."""


def type_of(column: str) -> str:
    """Return the type of a column, which follows from its name in whatever table."""
    if column in _WHOLE:
        return "int64"
    return "float64" if column in _REAL or column.endswith("_s") else "str"


def framed(rows: Iterable[dict[str, Any]], columns: Iterable[str]) -> pd.DataFrame:
    """Return a frame of rows; what a row lacks is "", NaN or 0, by the column's type."""
    rows = list(rows)
    return pd.DataFrame(
        {
            name: pd.Series([row.get(name, NOTHING[kind]) for row in rows], dtype=kind)
            for name, kind in ((name, type_of(name)) for name in columns)
        }
    )


@dataclass(frozen=True)
class _Row:
    """A build, and what the profile says of it."""

    built: Built
    cause: Cause
    begin_ns: int
    """When the profile began."""
    cold: dict[str, float]

    def requests(self, name: str) -> str:
        """Return what its compile requests have, each value once."""
        values = (getattr(request, name) for request in self.built.line.requests)
        return ", ".join(dict.fromkeys(filter(None, values)))

    def program(self, name: str) -> float:
        """Return a number of its executable; NaN where there is none."""
        program = self.built.line.program
        return getattr(program, name) if program else math.nan

    @property
    def saved_s(self) -> float:
        """What hits saved, as far as it is known."""
        saved = [saved_s(request, self.cold) for request in self.built.line.requests]
        known = [seconds for seconds in saved if seconds is not None]
        return sum(known) if known else math.nan


_BUILD: dict[str, Callable[[_Row], Any]] = {
    "process": lambda row: row.built.process.name,
    "pid": lambda row: row.built.process.started.pid,
    "thread": lambda row: row.built.line.thread,
    "build": lambda row: row.built.line.id,
    "kind": lambda row: row.built.line.kind,
    "function": lambda row: row.built.function.name,
    "qualname": lambda row: row.built.function.qualname,
    "through": lambda row: row.built.function.through,
    "origin": lambda row: row.built.function.origin,
    "file": lambda row: row.built.function.file,
    "line": lambda row: row.built.function.line,
    "call_site": lambda row: row.built.site,
    "site_function": lambda row: row.built.call_site.function,
    "test": lambda row: row.built.line.test,
    "begin_s": lambda row: (row.built.line.begin_ns - row.begin_ns) / 1e9,
    "end_s": lambda row: (row.built.line.end_ns - row.begin_ns) / 1e9,
    "build_s": lambda row: row.built.build_ns / 1e9,
    **{
        f"{stage}_s": lambda row, stage=stage: row.built.stage_ns(stage) / 1e9  # type: ignore[misc]
        for stage in (*STAGES, OTHER)
    },
    "xla_s": lambda row: sum(one.compile_ns for one in row.built.line.requests) / 1e9,
    "own_s": lambda row: row.built.line.own_ns / 1e9,
    "traces": lambda row: row.built.times("trace"),
    "lowers": lambda row: row.built.times("lower"),
    "compiles": lambda row: row.built.compiles,
    "loads": lambda row: row.built.hits,
    "outcome": lambda row: row.requests("outcome"),
    "reason": lambda row: row.requests("reason"),
    "key": lambda row: row.requests("key"),
    "cause": lambda row: row.cause.kind,
    "argument": lambda row: row.cause.argument,
    "before": lambda row: row.cause.before,
    "after": lambda row: row.cause.after,
    "sentence": lambda row: row.cause.sentence,
    "remedy": lambda row: row.cause.remedy,
    "saved_s": lambda row: row.saved_s,
    "entry_bytes": lambda row: sum(r.entry_bytes for r in row.built.line.requests) or math.nan,
    "code_bytes": lambda row: row.program("code_bytes"),
    "argument_bytes": lambda row: row.program("argument_bytes"),
    "output_bytes": lambda row: row.program("output_bytes"),
    "temporary_bytes": lambda row: row.program("temp_bytes"),
    "flops": lambda row: row.program("flops") or math.nan,
    "fingerprint": lambda row: row.built.line.program.fingerprint if row.built.line.program else "",
    "error": lambda row: row.built.line.error,
}


def builds(profile: Recorded) -> pd.DataFrame:
    """Return a row per build, in the order in which they began; unfinished ones at the end."""
    return profile.once("rows", lambda: _rows(profile)).copy(deep=False)


def _rows(profile: Recorded) -> pd.DataFrame:
    cold, nothing = cold_seconds(profile), Cause("")
    rows = [
        _Row(built, nothing if built.going_on else profile.cause_of(built), profile.begin_ns, cold)
        for built in (*profile.builds, *profile.unfinished)
    ]
    return framed(({name: of(row) for name, of in _BUILD.items()} for row in rows), _BUILD)
