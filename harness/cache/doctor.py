"""Check a cache directory."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from harness.cache import directory_checks, entry_checks
from harness.cache.finding import CacheFinding, Look
from harness.cache.here import CacheSettings, Here, look_here, settings
from harness.cache.put_cost import PutCost
from harness.cache.survey import Survey
from harness.errors import ExitCode

CHECKS = {**entry_checks.CHECKS, **directory_checks.CHECKS}
"""All that is looked for, in this order."""

State = Literal["healthy", "empty", "unsettled", "problem", "unusable"]

WORST: tuple[State, ...] = ("unusable", "problem", "unsettled")


class Diagnosis(msgspec.Struct, frozen=True):
    """What JAX does with a directory, all findings, the worst first, and what they add up to."""

    state: State
    here: Here
    findings: tuple[CacheFinding, ...]
    put_cost: PutCost | None = None

    @property
    def exit_code(self) -> ExitCode:
        """What the command line ends with."""
        codes = {"problem": ExitCode.WORSE, "unusable": ExitCode.UNUSABLE}
        return codes.get(self.state, ExitCode.FINE)


def diagnose(
    survey: Survey, used: CacheSettings | None = None, release: str = "", **more: Any
) -> Diagnosis:
    """Check a cache under some settings, or those of the environment, for a release of JAX.

    `more` is what else is known: `put_cost`, `settle_s` and `refused` of :class:`Look`.
    """
    here = look_here(survey, used or settings(), release)
    ours = tuple(entry for entry in survey.entries if entry.key)
    look = Look(survey, here, ours, **more)
    order = ("unusable", "problem", "unsettled", "note")
    findings = [finding for check in CHECKS.values() for finding in check(look)]
    findings.sort(key=lambda finding: order.index(finding.severity))
    severities = {finding.severity for finding in findings}
    quiet: State = "healthy" if survey.entries else "empty"
    state: State = next((one for one in WORST if one in severities), quiet)
    return Diagnosis(state, here, tuple(findings), look.put_cost)
