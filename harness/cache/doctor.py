"""Find what ails a cache directory."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from harness.cache import directory_ailments, entry_ailments
from harness.cache.ailment import CacheFinding, Examined
from harness.cache.put_cost import PutCost
from harness.cache.survey import Entry, Survey
from harness.errors import ExitCode

AILMENTS = {one.name: one for one in (*entry_ailments.AILMENTS, *directory_ailments.AILMENTS)}
"""All that the doctor looks for, in this order."""

State = Literal["healthy", "empty", "unsettled", "ailing", "unusable"]


class Diagnosis(msgspec.Struct, frozen=True):
    """All findings on a directory, and the state that they add up to."""

    state: State
    findings: tuple[CacheFinding, ...]
    put_cost: PutCost | None = None

    @property
    def exit_code(self) -> ExitCode:
        """What the command line ends with."""
        codes = {"ailing": ExitCode.WORSE, "unusable": ExitCode.UNUSABLE}
        return codes.get(self.state, ExitCode.FINE)


def diagnose(survey: Survey, **known: Any) -> Diagnosis:
    """Find what ails a cache; what else is known of it, :class:`Examined` tells."""
    ours = tuple(entry for entry in survey.entries if entry.key)  # others' files are not JAX's
    examined = Examined(msgspec.structs.replace(survey, entries=ours), **known)
    findings = tuple(
        finding for ailment in AILMENTS.values() for finding in ailment.findings(examined)
    )
    severities = {finding.severity for finding in findings}
    worst: tuple[State, ...] = ("unusable", "ailing", "unsettled")
    quiet: State = "healthy" if survey.entries else "empty"
    state: State = next((one for one in worst if one in severities), quiet)
    return Diagnosis(state, findings, examined.put_cost)


def to_quarantine(survey: Survey, diagnosis: Diagnosis) -> list[Entry]:
    """The entries that a quarantine moves: bad ones, whose writer has surely finished."""
    names = {
        name
        for finding in diagnosis.findings
        if AILMENTS[finding.kind].moved_aside and finding.settled
        for name in finding.entries
    }
    return [entry for entry in survey.entries if entry.name in names]
