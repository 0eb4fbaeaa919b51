"""Frames with known answers for the tests of the functions on frames."""

from __future__ import annotations

from typing import Any

from harness.frame.load import frame_of
from tests.frame.trees import record

HOSTILE = "<script>alert(1)</script>.\n\x00شكل"


def case(stages: dict[str, Any], n: int = 6, **fields: Any) -> list[Any]:
    """Return the records of one case from `n` processes; seconds by stage, or a list of them."""
    found = []
    for process in range(n):
        ns = {
            stage: [1e9 * (value[process] if isinstance(value, list) else value)]
            for stage, value in stages.items()
        }
        one = record(process, ns, **fields)
        one.fingerprint = fields.get("fingerprint", one.key)
        found.append(one)
    return found


def frame(*cases: list[Any]) -> Any:
    return frame_of(one for records in cases for one in records)
