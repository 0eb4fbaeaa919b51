"""Why two rows cannot be compared."""

from __future__ import annotations

from functools import lru_cache

from harness.errors import UsageError
from harness.frame.environment_difference import ARROW
from harness.frame.machines import REMEDY, row_difference
from harness.stages import sampling
from harness.verdicts.rows import Row

ACROSS = "`--across machine` compares them all the same."
"""How to ask for what is not compared unasked."""


def incomparable(a: Row | None, b: Row | None, machines: bool = True) -> str:
    """Return why two rows cannot be compared, or "" if they can.

    `machines` says whether those of two machines, or of unlike ones of one name, cannot.
    """
    if a is None or b is None:
        return "only in A" if b is None else "only in B"
    if a["version"] != b["version"]:
        return f"the workload or the method changed: {a['version']}{ARROW}{b['version']}"
    bad = {arm: _status_text(row) for arm, row in (("A", a), ("B", b)) if row["status"] != "ok"}
    if bad:
        return f"{' and '.join(bad)} {' / '.join(dict.fromkeys(bad.values()))}"
    protocols = [_protocol(row["effort"]) for row in (a, b)]
    if all(protocols) and protocols[0] != protocols[1]:
        return (
            f"processes did different things: {protocols[0]} (effort {a['effort']}) and "
            f"{protocols[1]} (effort {b['effort']})"
        )
    for arm, row in (("A", a), ("B", b)):
        if len(row["samples"]) not in (0, row["n_processes"]):
            return f"{arm} does not say which samples are of which process"
    return _of_machines(a, b) if machines else ""


def _of_machines(a: Row, b: Row) -> str:
    differs = row_difference(a, b)
    if not differs:
        return ""
    if a["machine"] == b["machine"]:
        return f"{differs}. {REMEDY} {ACROSS}"
    return f"unlike machines: {differs}. {ACROSS}"


def _status_text(row: Row) -> str:
    return ": ".join(filter(None, (row["status"], row["reason"])))


@lru_cache
def _protocol(effort: str) -> str:
    try:
        return sampling.effort(effort).protocol
    except UsageError:  # of another version of the harness, or of none
        return ""


def program_of(a: Row, b: Row) -> str:
    """Return whether two rows built the same program: `equal`, `differs`, or "" if not known."""
    if not a["fingerprint"] or not b["fingerprint"]:
        return ""
    return "equal" if a["fingerprint"] == b["fingerprint"] else "differs"
