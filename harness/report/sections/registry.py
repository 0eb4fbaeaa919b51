"""All sections of the report on results, in the order of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.sections import (
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

if TYPE_CHECKING:
    from harness.report.content import Section
    from harness.report.measured import Measured

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
