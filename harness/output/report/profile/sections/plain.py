"""Sections that are one table each, as `harness profile show` has it; builds have arguments too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from harness.output.report.content import Content, Section, Table
from harness.output.report.profile.tables import MOST, Shown, table
from harness.profiles.pieces import STAGES

if TYPE_CHECKING:
    from harness.profiles.model import Built
    from harness.profiles.recorded import Recorded


def _section(name: str, title: str, intro: str, caption: str, empty: str) -> Section[Shown]:
    def content(shown: Shown) -> Content:
        frame = shown.frame(name)
        if frame.empty:
            return Content(notes=(empty,))
        notes: tuple[str, ...] = ()
        if len(frame) > MOST:
            notes = (
                f"The first {MOST} of {len(frame)} rows; `harness profile show FOLDER --table "
                f"{name} --format csv` has all of them.",
            )
        made = table(name, caption, frame, ("function", "call_site", "process", "thread"))
        return Content(tables=(made,), shown=(name,), notes=notes)

    return Section(name=name, title=title, intro=intro, content=content)


FUNCTIONS = _section(
    "functions",
    "Functions",
    "Functions that were jitted, by their place in the source.",
    "Functions, the most expensive first",
    "No function was built.",
)
CACHE = _section(
    "cache",
    "Persistent cache",
    "What JAX’s persistent compilation cache did for this program.",
    "Requests to the persistent cache",
    "The persistent cache was never asked.",
)
EAGER = _section(
    "eager",
    "Eager operations",
    "Programs of one operation, which JAX builds for each operation outside a jitted function, and "
    "for each shape and dtype anew.",
    "Eager operations, the most expensive first",
    "No operation outside a jitted function was built.",
)
THREADS = _section(
    "threads",
    "Threads",
    "Who built: each thread of each process.",
    "Threads",
    "No thread built anything.",
)


MOST_BUILDS = 3000
"""Rows of the table: the builds that took longest."""

BUILD_COLUMNS = [
    "function",
    "call_site",
    "cause",
    "argument",
    *(f"{stage}_s" for stage in STAGES),
    "outcome",
    "arguments",
    "begin_s",
    "code_bytes",
    "temporary_bytes",
]

LONGEST_ARGUMENTS = 160
"""Characters of the arguments that are shown."""


def _builds(shown: Shown) -> Content:
    rows = shown.frame("builds")
    if rows.empty:
        return Content(notes=("There was none.",))
    notes: tuple[str, ...] = ()
    if (left := len(rows) - MOST_BUILDS) > 0:
        notes = (
            f"{left} builds that took less than these are not in the table; "
            "`harness profile show FOLDER --table builds --format csv` has all of them.",
        )
    return Content(tables=(_table(shown.profile, rows),), shown=("builds",), notes=notes)


def _table(profile: Recorded, rows: pd.DataFrame) -> Table:
    builds = (*profile.builds, *profile.unfinished)
    kept = rows["build_s"].nlargest(MOST_BUILDS).index.sort_values()
    texts = [_arguments_text(builds[place])[:LONGEST_ARGUMENTS] for place in kept]
    data = rows.loc[kept].assign(arguments=texts)
    data = data[[*BUILD_COLUMNS, "error", "test", "process"]]
    return table("builds", "Builds, in order", data, BUILD_COLUMNS, MOST_BUILDS)


def _arguments_text(built: Built) -> str:
    """Return what a build was called with, static arguments last."""
    if built.arguments is None:
        return ""
    dynamic = [f"{leaf.path}: {leaf.aval}" for leaf in built.arguments.leaves]
    return ", ".join([*dynamic, *(f"{one.name}={one.value}" for one in built.arguments.statics)])


BUILDS = Section(
    name="builds",
    title="Builds",
    intro="A build is one time that JAX left its fast path for a function, and traced, lowered, "
    "compiled or loaded something.",
    content=_builds,
)
