"""Records of a history for tests: one case, night after night."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.records.schema import Record, to_raw
from tests.frame.trees import record

DAY_MS = 86_400_000
FIRST_MS = 1_780_000_000_000
PROCESSES = 8


def night_name(number: int) -> str:
    """Return the name of a night."""
    return f"2026-11-{number + 1:02d}"


def night_of(
    number: int, seconds: float, stage: str = "compile", scatter: float = 0.01, **fields: Any
) -> list[Record]:
    """Return the records of one case in one night, whose median process takes `seconds`."""
    spread = seconds * (1 + scatter * np.linspace(-1, 1, PROCESSES))
    values: dict[str, Any] = {
        "commit": f"{number:040x}",
        "commit_date_ms": FIRST_MS + number * DAY_MS,
        "night": night_name(number),
        "fingerprint": "f0",
        "started_at_ms": FIRST_MS + number * DAY_MS + 3_600_000,
        "environment": to_raw({"jax": "0.11.2", "flags": {"XLA_FLAGS": "--a=1"}}),
        **fields,
    }
    started = values.pop("started_at_ms")
    return [
        record(
            process,
            {stage: [float(seconds_of * 1e9)]},
            started_at_ms=started + process,
            **values,
        )
        for process, seconds_of in enumerate(spread)
    ]


def nights(seconds: list[float], changes: dict[int, dict[str, Any]] | None = None, **fields: Any):
    """Return the records of one case, one night per value; `changes` hold fields from a night on.

    A value of NaN is a night that was left out.
    """
    records: list[Record] = []
    own: dict[str, Any] = dict(fields)
    for number, value in enumerate(seconds):
        own |= (changes or {}).get(number, {})
        if value == value:
            records += night_of(number, value, **own)
    return records


def noisy(count: int, seed: int, noise: float = 0.01) -> list[float]:
    """Return times around 1 s."""
    return np.exp(np.random.default_rng(seed).normal(0, noise, count)).tolist()


def stepped(at: int = 6, count: int = 12, factor: float = 1.3, seed: int = 1) -> list[float]:
    """Return such times with a step."""
    return [value * (factor if n >= at else 1) for n, value in enumerate(noisy(count, seed))]
