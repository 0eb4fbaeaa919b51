"""Arms for tests: frames of records of eight processes, as a sweep leaves them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pandas as pd

from harness.frame.load import frame_of
from harness.records.schema import Record, to_raw
from harness.records.store import Store, store_path
from tests.frame.trees import COMMIT, record

OTHER = "f" * 40


def records(
    factor: float = 1.0,
    n: int = 8,
    spread: float = 0.01,
    stages: tuple[str, ...] = ("compile",),
    seed: int = 0,
    **fields: Any,
) -> list[Record]:
    """Return a case of `n` processes, each about `factor` ms long; the reference takes 1 ms."""
    rng = random.Random(f"{seed}{factor}{fields}")
    found = []
    for process in range(n):
        times = {s: [1e6 * factor * rng.lognormvariate(0, spread)] * 3 for s in stages}
        given = {
            "reference_ns": {name: 1e6 for name in ("trace", "lower", "compile", "loop")},
            "environment": to_raw({"jax": fields.get("jax", "0.10.2"), "flags": {}}),
            **fields,
        }
        found.append(record(process, times, **given))
    return found


def arm(*args: Any, **fields: Any) -> pd.DataFrame:
    """Return the frame of :func:`records`."""
    return frame_of(records(*args, **fields))


def tree(folder: Path, **b: Any) -> Path:
    """Write a results tree with two commits of a case, the second as `b` says."""
    for one in (*records(commit=COMMIT), *records(commit=OTHER, **b)):
        Store(store_path(folder, one.machine, one.commit, one.env, one.night)).append([one])
    return folder
