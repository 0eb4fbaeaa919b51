"""Which processes of a case ran other code than its last one: no row may stand for both."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import msgspec

from harness.declare.code import conflicts

NOT_RECORDED = "one did not record what it ran"

PROGRAM_CHANGED = (
    "the program changed though no code did: an environment variable or data file that is not in "
    "depends_on?"
)


def as_text(code: msgspec.Raw | Mapping[str, str]) -> str:
    """Return the code of a record as the JSON text that it is in a file; "" if not recorded."""
    if isinstance(code, msgspec.Raw):
        return bytes(code).decode()
    return msgspec.json.encode(code).decode() if code else ""


def other_code(code: Mapping[str, str], last: str) -> tuple[list[str], str]:
    """Return which processes ran other code than `last`, and a sentence on them, "" if none did.

    Args:
        code: the text of what each process ran, by its name.
        last: that of the process which the others are held against.
    """
    differing = {process: differences(ran, last) for process, ran in code.items()}
    others = [process for process, names in differing.items() if names]
    if not others:
        return [], ""
    names = dict.fromkeys(name for process in others for name in differing[process])
    return others, (
        f"{len(others)} of {len(code)} processes ran other code and are left out: "
        f"{', '.join(names)}"
    )


@functools.cache
def differences(ran: str, last: str) -> tuple[str, ...]:
    """Return what two texts of code differ in."""
    if not ran or not last:
        return () if ran == last else (NOT_RECORDED,)
    return tuple(conflicts(msgspec.json.decode(ran), msgspec.json.decode(last)))
