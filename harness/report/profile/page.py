"""The page of a profile: its sections, and the answers at the top."""

from __future__ import annotations

import os
from pathlib import Path

from harness.profiles.recorded import Recorded
from harness.report import page
from harness.report.content import Filters, Report
from harness.report.profile.sections.registry import SECTIONS
from harness.report.profile.shown import Shown

FILTERS = Filters(
    "Function",
    ("function", "call_site"),
    ("cause", "stage", "process"),
    "builds",
    "builds",
)


def assemble(profile: Recorded) -> Report:
    """Return what the report of a profile says."""
    shown = Shown(profile)
    parts = [part for section in SECTIONS if (part := section.part(shown)) is not None]
    answering = [(section, section.answer) for section in SECTIONS if section.answer is not None]
    answers = [
        (answer.question, answer.lines(shown), section.name)
        for section, answer in sorted(answering, key=lambda pair: pair[1].place)
    ]
    words = list(profile.command)
    words[:1] = map(os.path.basename, words[:1])
    title = f"Profile of {' '.join(words) or 'a program'}"
    return Report(title, tuple(answers), tuple(parts), filters=FILTERS)


def write(profile: Recorded, output: Path) -> int:
    """Write the report of a profile as one HTML file, and return its size in bytes.

    Raises:
        StoreError: the file cannot be written.
    """
    return page.save(assemble(profile), output)
