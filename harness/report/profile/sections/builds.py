"""Every build, one to a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from harness.profiles.pieces import STAGES
from harness.report.content import Content, Section, Table
from harness.report.profile import tables

if TYPE_CHECKING:
    from harness.profiles.model import Built
    from harness.profiles.recorded import Recorded
    from harness.report.profile.shown import Shown

MOST = 3000
"""Rows of the table: the builds that took longest."""

COLUMNS = [
    *("function", "call_site", "cause", "argument", *(f"{stage}_s" for stage in STAGES)),
    *("outcome", "arguments", "begin_s", "code_bytes", "temporary_bytes"),
]

LONGEST = 160
"""Characters of the arguments that are shown."""


def _content(shown: Shown) -> Content:
    rows = shown.frame("builds")
    if rows.empty:
        return Content(notes=("There was none.",))
    notes: tuple[str, ...] = ()
    if (left := len(rows) - MOST) > 0:
        notes = (
            f"{left} builds that took less than these are not in the table; "
            "`harness profile show FOLDER --table builds --format csv` has all of them.",
        )
    return Content(tables=(_table(shown.profile, rows),), shown=("builds",), notes=notes)


def _table(profile: Recorded, rows: pd.DataFrame) -> Table:
    builds = (*profile.builds, *profile.unfinished)
    kept = rows["build_s"].nlargest(MOST).index.sort_values()
    texts = [_arguments_text(builds[place])[:LONGEST] for place in kept]
    data = rows.loc[kept].assign(arguments=texts)
    data = data[[*COLUMNS, "error", "test", "process"]]
    return tables.table("builds", "Builds, in order", data, COLUMNS, MOST)


def _arguments_text(built: Built) -> str:
    """Return what a build was called with, static arguments last."""
    if built.arguments is None:
        return ""
    dynamic = [f"{leaf.path}: {leaf.aval}" for leaf in built.arguments.leaves]
    return ", ".join([*dynamic, *(f"{one.name}={one.value}" for one in built.arguments.statics)])


SECTION = Section(
    name="builds",
    title="Builds",
    intro="A build is one time that JAX left its fast path for a function, and traced, lowered, "
    "compiled or loaded something.",
    content=_content,
)
