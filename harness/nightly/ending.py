"""What a night ends with, and what its file may say of this machine."""

from __future__ import annotations

import re

from harness.nightly.state import Night

FINE, SLOWER, SOME_FAILED, NOTHING_MEASURED, STEP_FAILED = 0, 1, 3, 5, 6

_ADDRESS = re.compile(r"\w+://\S+")
_FOLDERS = re.compile(r"(?<![\w.:/-])/(?:[^/\s'\"]+/)+")


def without_places(text: str) -> str:
    """Return a text without addresses and folders: a night's file may be published."""
    return _FOLDERS.sub("", _ADDRESS.sub("(an address)", text))


def exit_code(night: Night) -> int:
    """Return what a night whose steps are done ends with: the gravest that holds."""
    found = [one.rows for one in night.environments if one.rows is not None]
    failed = {name for name, outcome in night.steps.items() if outcome.status == "failed"}
    if not found or any(one.ok == 0 for one in found):
        return NOTHING_MEASURED
    if any(name.startswith(("measure ", "rows")) for name in failed) or any(
        one.failed or one.refused or one.missing for one in found
    ):
        return SOME_FAILED
    if night.slower():
        return SLOWER
    return STEP_FAILED if failed else FINE
