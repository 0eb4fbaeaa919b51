"""The report on a results tree: its sections, and the answers at the top."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from harness.report.content import Report, assemble
from harness.report.measured import Measured
from harness.report.sections.registry import SECTIONS
from harness.verdicts import error_rates as stored
from harness.verdicts.error_rates import ErrorRates

MOST_NAMES = 4
"""Machines that the title names."""


def report(measured: Measured, links: Sequence[tuple[str, str]] = ()) -> Report:
    """Return what the report says; `links` are text and address of other pages."""
    names = list(dict.fromkeys(measured.cases["machine"]))
    title = ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} machines"
    about = f"Benchmarks of {title or 'no machine'}"
    return assemble(about, SECTIONS, measured, links=tuple(links))


def error_rates(results: Path, frame: pd.DataFrame) -> list[ErrorRates]:
    """Return the error rates of each machine at the effort that most of its rows have.

    Else its newest, as `harness compare` takes them; none is fine.
    """
    found = (
        stored.newest(results, str(name), str(part["effort"].mode().iat[0]))
        for name, part in frame.groupby("machine", sort=False)
    )
    return [rates for rates in found if rates is not None]
