"""All sections of the page of a profile, in its order."""

from __future__ import annotations

from harness.report.content import Section
from harness.report.profile.sections import (
    causes,
    environment,
    limits,
    plain,
    sites,
    time,
    timeline,
)
from harness.report.profile.tables import Shown

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
