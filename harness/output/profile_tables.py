"""The tables of a profile with their words, and as people read them in a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from harness.output.profile_causes import sentence
from harness.output.profile_remedies import remedy_text
from harness.profiles import tables
from harness.profiles.figures import groups
from harness.profiles.names import around_text, shortened, transformed
from harness.profiles.tables import places, type_of
from harness.records.units import seconds_text

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded


class TableWords(NamedTuple):
    """What a table is about."""

    about: str
    main: str
    """Columns that a terminal shows, as many as fit, from the first."""


TABLES: Mapping[str, TableWords] = {
    "time": TableWords(
        "the wall time of the run and of each process, in parts that add up to it",
        "process part seconds share meaning low high",
    ),
    "functions": TableWords(
        "a row per function: builds, stages, first call, later calls that were looked up",
        "function builds build_s causes again_s compiles compile_s again traces loads visits "
        "trace_s lowers lower_s load_s first_call_s n_call_sites",
    ),
    "builds": TableWords(
        "a row per build: everything that is known of it",
        "begin_s function build_s call_site cause argument before after process compile_s load_s "
        "reason trace_s lower_s outcome other_s",
    ),
    "causes": TableWords(
        "a row per function and cause",
        "function cause argument builds build_s remedy values call_sites n_values",
    ),
    "sites": TableWords(
        "a row per line of code that builds were asked for from",
        "call_site builds build_s functions causes compiles site_function sampled_s compile_s "
        "loads trace_s lower_s load_s other_s",
    ),
    "cache": TableWords(
        "what the persistent cache did: outcomes, reasons, seconds",
        "outcome reason requests compile_s saved_s entry_bytes load_s write_s modules",
    ),
    "eager": TableWords(
        "lines that call JAX's own functions outside jit",
        "call_site builds compiles build_s functions site_function",
    ),
    "threads": TableWords(
        "a row per thread, with the parts of its time",
        "process thread main wall_s build_s compile_s jax_s library_s program_s samples trace_s "
        "lower_s other_s load_s unattributed_s",
    ),
}


MEANINGS: Mapping[str, str] = {
    "python": "from the start of the process until recording began",
    "import": "`import jax`",
    "backend": "JAX made its backends",
    "trace": "Python functions became jaxprs",
    "lower": "jaxprs became StableHLO",
    "compile": "StableHLO became programs, in XLA",
    "load": "programs came from the persistent cache",
    "write": "programs were written to the persistent cache",
    "other": "the rest of calls that built: arguments, dispatch, the first run until it returned",
    "profile": "the profile's own cost",
    "jax": "outside builds, in JAX: dispatch, waiting for results (sampled)",
    "library": "outside builds, in libraries and Python's own modules (sampled)",
    "program": "outside builds, in the program's own code (sampled)",
    "end": "from the end of recording until the process was gone",
    "unattributed": "nothing recorded says what it was",
}


def frame(profile: Recorded, table: str = "builds") -> pd.DataFrame:
    """Return one of the tables, with the words of what it has in codes; docs/profile.md has it.

    Raises:
        UsageError: if there is no such table.
    """
    made = tables.frame(profile, table)
    if table == "time":
        return made.assign(meaning=pd.Series(map(MEANINGS.get, made["part"]), dtype="str"))
    if table not in ("builds", "causes"):
        return made
    if table == "causes":
        rows = [(group.cause, group.built) for group in groups(profile, profile.builds)]
    else:
        rows = [(profile.cause_of(built), built) for built in profile.builds]
    going_on = [""] * (len(made) - len(rows))
    texts = {
        "sentence": [*(sentence(cause, built) for cause, built in rows), *going_on],
        "remedy": [*(remedy_text(cause.remedy) for cause, _ in rows), *going_on],
    }
    for name, values in texts.items():
        place = made.columns.get_loc("remedy_id")
        made.insert(int(place), name, pd.Series(values, dtype="str"))  # type: ignore[arg-type]
    return made


_MOST = 60
"""Characters of a text that are shown; four times as many of one that lists others."""

_LISTS = frozenset({"values", "call_sites", "causes", "functions", "sentence", "remedy", "meaning"})

_PLACE = 32
"""Characters of a place that are shown: its end, with the line."""


def listed(
    profile: Recorded, frame: pd.DataFrame, table: str, most: int | None
) -> tuple[pd.DataFrame, str]:
    """Return a frame of text with the main columns, and a line on the rows that are left out.

    Args:
        profile: what the frame is of.
        frame: one of the tables.
        table: its name.
        most: rows that are shown; None for all.
    """
    if table == "builds":
        frame = frame.sort_values("build_s", ascending=False, kind="stable")
    if table == "time":
        frame = _times(frame)
    if "function" in frame and "through" in frame:
        functions = [one for process in profile.processes for one in process.functions.values()]
        around = {around_text(one.around): one.around for one in functions}
        names = map(transformed, frame["function"], map(around.__getitem__, frame["through"]))
        frame = frame.assign(function=[*map(add, names, places(frame))])
    shown = frame if most is None else frame.head(most)
    # A column of nothing but zeros or empty texts says nothing.
    main = TABLES[table].main.split()
    columns = [name for name in main if shown[name].fillna(0).astype(bool).any()]
    rows = [
        [_cell(name, value) for name, value in zip(columns, row, strict=True)]
        for row in shown[columns].itertuples(index=False, name=None)
    ]
    left = len(frame) - len(shown)
    note = f"{left:,} more rows: --format csv has them all, and every column." if left else ""
    return pd.DataFrame(rows, columns=columns, dtype="str"), note


def _times(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the parts that took time; of the processes only where there are several."""
    if frame["process"].nunique() <= 2:  # the run, and the only process
        frame = frame[frame["scope"] == "run"]
    frame = frame[frame["seconds"] > 0]
    return frame.assign(process=[name or "the whole run" for name in frame["process"]])


def is_number(heading: str) -> bool:
    """Return whether a column is set to the right."""
    return type_of(heading) != "str"


def _cell(name: str, value: Any) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        if name == "share":
            return f"{100 * value:.1f} %"
        if name.endswith("_s") or name in ("seconds", "low", "high"):
            return seconds_text(value) if value > 0 else "0"
        return f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}" if name != "thread" else str(value)
    text = str(value)
    if name == "call_site" and len(text) > _PLACE:
        return "…" + text[1 - _PLACE :]
    return shortened(text, 4 * _MOST if name in _LISTS else _MOST)
