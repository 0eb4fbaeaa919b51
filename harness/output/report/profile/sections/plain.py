"""Sections that are one table each, as `harness profile show` has it; builds have arguments too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from harness.output.report.content import Content, Section
from harness.output.report.profile.tables import MOST, Shown, table
from harness.profiles.pieces import STAGES

if TYPE_CHECKING:
    from harness.profiles.model import Built
    from harness.profiles.recorded import Recorded

MOST_BUILDS = 3000
"""Rows of the table of builds: those that took longest."""

BUILD_COLUMNS = [
    "function", "call_site", "cause", "argument", *(f"{stage}_s" for stage in STAGES), "outcome",
    "arguments", "begin_s", "code_bytes", "temporary_bytes",
]  # fmt: skip

LONGEST_ARGUMENTS = 160
"""Characters of the arguments that are shown."""


def _section(name: str, title: str, intro: str, caption: str, empty: str) -> Section[Shown]:
    def content(shown: Shown) -> Content:
        frame = shown.frame(name)
        if frame.empty:
            return Content(notes=(empty,))
        first, most, rows = ["function", "call_site", "process", "thread"], MOST, len(frame)
        if name == "builds":
            first, most = BUILD_COLUMNS, MOST_BUILDS
            frame = _builds(shown.profile, frame)
        notes = (
            f"{rows - most} more rows, of less time: `harness profile show FOLDER --table {name} "
            "--format csv` has all of them.",
        ) * (rows > most)
        made = table(name, caption, frame, first, most)
        return Content(tables=(made,), shown=(name,), notes=notes)

    return Section(name=name, title=title, intro=intro, content=content)


def _builds(profile: Recorded, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the builds that took longest, in order, with the arguments of each."""
    builds = (*profile.builds, *profile.unfinished)
    longest = rows["build_s"].nlargest(MOST_BUILDS).index.sort_values()
    texts = [_arguments_text(builds[place])[:LONGEST_ARGUMENTS] for place in longest]
    return rows.loc[longest].assign(arguments=texts)[[*BUILD_COLUMNS, "error", "test", "process"]]


def _arguments_text(built: Built) -> str:
    """Return what a build was called with, static arguments last."""
    if built.arguments is None:
        return ""
    dynamic = [f"{leaf.path}: {leaf.aval}" for leaf in built.arguments.leaves]
    return ", ".join([*dynamic, *(f"{one.name}={one.value}" for one in built.arguments.statics)])


FUNCTIONS = _section(
    "functions",
    "Functions",
    "Functions that were jitted, by their place in the source.",
    "Functions, the most expensive first",
    "No function was built.",
)
BUILDS = _section(
    "builds",
    "Builds",
    "A build is one time that JAX left its fast path for a function, and traced, lowered, compiled "
    "or loaded something.",
    "Builds, in order",
    "There was none.",
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
