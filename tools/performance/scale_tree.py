"""A SYNTHETIC frame of any size: nothing in it was measured.

It looks like :func:`harness.load`'s: a row per case, stage and night of one machine named
`synthetic`, with noise between nights, noise between processes, a release of JAX half-way, and real
steps in a few cases.
"""

import json
import math
from typing import Any

import numpy as np
import pandas as pd

from harness.frame.columns import COLUMNS, COUNT, NUMBER, TEXT, objects
from harness.frame.frame import to_frame
from harness.program.facts import TOTALS

STAGES = {
    **{"trace": 2e-3, "lower": 3e-3, "compile": 40e-3, "load": 5e-3},
    **{"first_call": 60e-3, "start": 0.4, "dispatch": 8e-6, "execute": 3e-4},
}
"""Stages, and about how many seconds each takes."""

RELEASES = ("0.11.2", "0.12.0")
PROCESSES = 8
FIRST_NIGHT = np.datetime64("2026-01-01")


def synthetic_frame(
    cases: int = 500,
    nights: int = 30,
    *,
    noise: float = 0.03,
    step: float = 1.3,
    stepped: float = 0.02,
    seed: int = 0,
) -> pd.DataFrame:
    """Return cases x 8 stages x nights rows; nothing in them was measured.

    Args:
        cases: how many; 8 of them make a workload, and differ in the axis `size`.
        nights: how many, a commit each.
        noise: standard deviation of log time between nights, and between processes.
        step: what the time of a stepped case is multiplied by.
        stepped: share of the cases with a step in `compile` and another program, half-way.
        seed: of everything random.
    """
    rng = np.random.default_rng(seed)
    shape = (nights, cases, len(STAGES))
    base = np.array(list(STAGES.values())) * np.exp(rng.normal(0, 1, (cases, 1)))
    level = np.broadcast_to(base, shape) * np.exp(rng.normal(0, noise, shape))
    changed = rng.random(cases) < stepped
    half = nights // 2
    level[half:, changed, list(STAGES).index("compile")] *= step
    samples = level[..., None] * np.exp(rng.normal(0, noise, (*shape, PROCESSES)))
    samples = samples.reshape(-1, PROCESSES)
    reference = np.exp(rng.normal(0, noise / 3, samples.shape)) * 1e-3
    night, case, stage = (index.ravel() for index in np.indices(shape))
    new = (night >= half).astype(int)
    dates = (FIRST_NIGHT + np.arange(nights)).astype("datetime64[ms]")
    program = np.where(changed[case] & (new == 1), 2, 1)
    environments = [
        json.dumps({"jax": jax, "jaxlib": jax, "python": "3.12.4", "flags": {"XLA_FLAGS": "-"}})
        for jax in RELEASES
    ]
    given: dict[str, Any] = {
        **{"machine": "synthetic", "python": "3.12.4", "target": "cpu", "status": "ok"},
        **{"transform": "forward", "scenario": "off", "unit": "seconds", "backend": "xla"},
        **{"effort": "default", "version": "1.synthetic", "n_forked": 0.0},
        "n_processes": PROCESSES,
        "commit": objects(f"{n:040x}" for n in range(1, nights + 1))[night],
        "commit_date": dates.view(np.int64)[night],
        "started_at": dates.view(np.int64)[night] + 7_200_000,
        "night": objects(str(date)[:10] for date in dates)[night],
        "jax": objects(RELEASES)[new],
        "jaxlib": objects(RELEASES)[new],
        "env": objects(f"py3.12-jax{jax}" for jax in RELEASES)[new],
        "environment": objects(environments)[new],
        "workload": objects(f"synthetic.Work{n // 8:04d}" for n in range(cases))[case],
        "stage": objects(STAGES)[stage],
        "fingerprint": objects(f"{n:08x}{built}" for n in range(cases) for built in (1, 2))[
            case * 2 + program - 1
        ],
        **{name: 100.0 * program for name in TOTALS},
        "value": np.median(samples, axis=1),
        "calibrated": np.median(samples / reference, axis=1),
        "low": samples.min(axis=1),  # the interval that the median of 8 has
        "high": samples.max(axis=1),
        "samples": objects(samples.tolist()),
        "calibrated_samples": objects((samples / reference).tolist()),
    }
    empty = {NUMBER: math.nan, COUNT: 0, TEXT: ""}
    columns = {}
    for name, kind in COLUMNS.items():
        value = given.get(name, empty.get(kind, []))
        columns[name] = value if isinstance(value, np.ndarray) else objects([value] * len(night))
    axes = [{"size": 2 ** (4 + n % 8)} for n in range(cases)]
    return to_frame(columns, axes, case)
