"""Every build, one to a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from harness.profiles.pieces import STAGES
from harness.report.content import Column, ColumnKind, Content, Section, Table

if TYPE_CHECKING:
    from harness.profiles.model import Built
    from harness.profiles.recorded import Recorded
    from harness.report.profile.shown import Shown

MOST = 3000
"""Rows of the table: the builds that took longest."""

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
    data = rows.loc[kept]
    seconds = {f"{stage}_s": data[f"{stage}_s"].where(data[f"{stage}_s"] > 0) for stage in STAGES}
    texts = [_arguments_text(builds[place])[:LONGEST] for place in kept]
    data = data.assign(arguments=texts, **seconds).reset_index(drop=True)
    columns = (
        Column("function", "function"),
        Column("call_site", "called at"),
        Column("cause", "cause"),
        Column("argument", "argument"),
        *(Column(f"{stage}_s", stage, ColumnKind.SECONDS, stage=stage) for stage in STAGES),
        Column("outcome", "persistent cache"),
        Column("arguments", "arguments"),
        Column("begin_s", "began at", ColumnKind.SECONDS),
        Column("code_bytes", "code", ColumnKind.BYTES),
        Column("temporary_bytes", "temporaries", ColumnKind.BYTES),
        *(Column(name, name, hidden=not data[name].any()) for name in ("error", "test")),
        Column("process", "process", hidden=data["process"].nunique() < 2),
    )
    return Table("builds", "Builds, in order", columns, data[[c.name for c in columns]])


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
