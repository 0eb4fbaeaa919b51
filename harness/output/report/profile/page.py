"""The page of a profile: its sections, and the answers at the top."""

from __future__ import annotations

import os
from pathlib import Path

from harness.output.report import page
from harness.output.report.content import FilterBar, Report, Section, assemble
from harness.output.report.profile.sections import (
    causes,
    environment,
    limits,
    plain,
    sites,
    time,
    timeline,
)
from harness.output.report.profile.tables import Shown
from harness.profiles.recorded import Recorded

SECTIONS: tuple[Section[Shown], ...] = (
    time.SECTION,
    causes.SECTION,
    timeline.SECTION,
    sites.SECTION,
    plain.FUNCTIONS,
    plain.BUILDS,
    plain.CACHE,
    plain.EAGER,
    plain.THREADS,
    environment.SECTION,
    limits.SECTION,
)

FILTERS = FilterBar(
    label="Function",
    search=("function", "call_site"),
    choices=("cause", "stage", "process"),
    counted="builds",
    noun="builds",
)


def profile_report(profile: Recorded) -> Report:
    """Return what the report of a profile says."""
    words = list(profile.command)
    words[:1] = map(os.path.basename, words[:1])
    title = f"Profile of {' '.join(words) or 'a program'}"
    return assemble(title, SECTIONS, Shown(profile), filters=FILTERS)


def write(profile: Recorded, output: Path) -> int:
    """Write the page of a profile, and return its size in bytes."""
    return page.save(profile_report(profile), output)
