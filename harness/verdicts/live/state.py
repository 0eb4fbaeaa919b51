"""How far a live comparison is, as its folder says."""

from __future__ import annotations

import msgspec

from harness.records.json_file import Count, Milliseconds

STATE = "live.json"
"""The file of a comparison's folder that says how far it is."""


class LiveState(msgspec.Struct):
    """How far a live comparison is: one JSON file, replaced after every round."""

    asked: str
    """Digest of what is compared and how."""
    seed: int
    begun_ms: Milliseconds
    rounds: Count = 0
    """That both arms have finished."""
    looks: list[int] = msgspec.field(default_factory=list)
    """Rounds that were finished at each look."""
    open: dict[str, int] = msgspec.field(default_factory=dict)
    """How many rows were open at the last look, by workload."""
    ended: bool = False
    schema: int = 0
