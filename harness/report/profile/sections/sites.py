"""Which lines of the program led to builds."""

from __future__ import annotations

from harness.profiles.recorded import Recorded
from harness.report.content import Part
from harness.report.profile import tree


def section(profile: Recorded) -> Part:
    """Return the section."""
    root = tree.grown(profile)
    return Part(
        "sites",
        "By call site",
        "Seconds of tracing, lowering, compiling and loading, by the calls that led to them. Lines "
        "of libraries are left out where lines of the program stand beside them; point at a line "
        "for all of them.",
        tree=tree.nodes(root),
        missing="" if root.builds else "Nothing was built.",
        command="" if root.builds else "harness profile -- python PROGRAM",
    )
