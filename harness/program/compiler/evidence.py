"""What remedies of slow builds and calls saved, where they were measured before.

`python -m tools.compile_causes --write` measures it, and writes the table.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("measured.csv")


class Experiment(NamedTuple):
    """One experiment: a small program as it is, and with the remedy of one cause."""

    kind: str
    target: str
    release: str
    """Of JAX."""
    measure: str
    """`build_s`: seconds of lower and compile; `call_s`: of a call; `flops`: as XLA counts them."""
    before: float
    after: float


def measured(kind: str, target: str, release: str) -> Experiment | None:
    """Return the experiment of a cause that is nearest: of the target, of the release, the last."""
    rows = (row for row in _table() if row.kind == kind)
    return max(
        rows, key=lambda row: (row.target == target, row.release == release, row), default=None
    )


@cache
def _table() -> tuple[Experiment, ...]:
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Experiment(kind, target, release, measure, float(before), float(after))
            for kind, target, release, measure, before, after in csv.reader(file)
        )
