"""Every build, one to a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.profiles.model import Built
from harness.profiles.pieces import STAGES
from harness.profiles.recorded import Recorded
from harness.report.content import BYTES, SECONDS, Column, Part, Table

if TYPE_CHECKING:
    import pandas as pd

MOST = 3000
"""Rows of the table: the builds that took longest."""

LONGEST = 160
"""Characters of the arguments that are shown."""


def section(profile: Recorded, rows: pd.DataFrame) -> Part:
    """Return the section; `rows` is `profile.frame("builds")`, in the order of the builds."""
    intro = (
        "A build is one time that JAX left its fast path for a function, and traced, lowered, "
        "compiled or loaded something."
    )
    if rows.empty:
        return Part("builds", "Builds", intro, notes=("There was none.",))
    left = len(rows) - MOST
    notes = (
        (
            f"{left} builds that took less than these are not in the table; "
            "`harness profile show FOLDER --table builds --format csv` has all of them.",
        )
        if left > 0
        else ()
    )
    return Part(
        "builds", "Builds", intro, tables=(_table(profile, rows),), shown=("builds",), notes=notes
    )


def _table(profile: Recorded, rows: pd.DataFrame) -> Table:
    builds = (*profile.builds, *profile.unfinished)
    kept = rows["build_s"].nlargest(MOST).index.sort_values()
    data = rows.loc[kept]
    seconds = {f"{stage}_s": data[f"{stage}_s"].where(data[f"{stage}_s"] > 0) for stage in STAGES}
    texts = [arguments_text(builds[place])[:LONGEST] for place in kept]
    data = data.assign(arguments=texts, **seconds).reset_index(drop=True)
    columns = (
        Column("function", "function"),
        Column("call_site", "called at"),
        Column("cause", "cause"),
        Column("argument", "argument"),
        *(Column(f"{stage}_s", stage, SECONDS, stage=stage) for stage in STAGES),
        Column("outcome", "persistent cache"),
        Column("arguments", "arguments"),
        Column("begin_s", "began at", SECONDS),
        Column("code_bytes", "code", BYTES),
        Column("temporary_bytes", "temporaries", BYTES),
        *(Column(name, name, hidden=not data[name].any()) for name in ("error", "test")),
        Column("process", "process", hidden=data["process"].nunique() < 2),
    )
    return Table("builds", "Builds, in order", columns, data[[c.name for c in columns]])


def arguments_text(built: Built) -> str:
    """Return what a build was called with, static arguments last."""
    if built.arguments is None:
        return ""
    dynamic = [f"{leaf.path}: {leaf.aval}" for leaf in built.arguments.leaves]
    return ", ".join([*dynamic, *(f"{one.name}={one.value}" for one in built.arguments.statics)])
