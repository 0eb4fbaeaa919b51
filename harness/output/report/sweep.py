"""The report on a results tree: its sections, and the answers at the top."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.output.report.content import Report, Section, assemble
from harness.output.report.measured import Measured
from harness.output.report.sections import (
    against,
    cache,
    compiles,
    environment,
    facts,
    history,
    limits,
    machines,
    samples,
    scaling,
    stages,
    verdicts,
)
from harness.verdicts.error_rates import ErrorRates, setting_of, stored

SECTIONS: tuple[Section[Measured], ...] = (
    stages.SECTION,
    compiles.SECTION,
    verdicts.SECTION,
    samples.SECTION,
    history.SECTION,
    machines.SECTION,
    scaling.SECTION,
    cache.SECTION,
    against.SECTION,
    facts.SECTION,
    environment.SECTION,
    limits.SECTION,
)
"""In the order of the page."""

MOST_NAMES = 4
"""Machines that the title names."""


def report(measured: Measured, links: Sequence[tuple[str, str]] = ()) -> Report:
    """Return what the report says; `links` are text and address of other pages."""
    names = list(dict.fromkeys(measured.cases["machine"]))
    title = ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} machines"
    about = f"Benchmarks of {title or 'no machine'}"
    return assemble(about, SECTIONS, measured, views=_views(measured), links=tuple(links))


def _views(measured: Measured) -> tuple[tuple[str, str], ...]:
    """Return what is often looked at: newest, what grows fastest, and verdicts that need a look."""
    given = measured.compared[0]["verdict"].value_counts()
    fixed = (("Newest", "?#stages"), ("Fastest growing", "?#scaling"))
    words = {"broken": "Broken", "slower": "Slower", "unsure": "Undecided"}
    return fixed + tuple(
        (f"{word} ({given[name]})", f"?change={name}#verdicts")
        for name, word in words.items()
        if name in given
    )


def error_rates(results: Path, frame: pd.DataFrame) -> list[ErrorRates]:
    """Return what is stored of each machine at the effort that most of its rows have, best first.

    None is fine.
    """
    settings = (setting_of(part, str(name)) for name, part in frame.groupby("machine", sort=False))
    return [rates for one in settings for rates in stored(results, one.machine, one.effort)]
