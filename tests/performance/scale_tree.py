"""A SYNTHETIC frame of any size: nothing in it was measured.

It looks like :func:`harness.load`'s: a row per case, stage and night of one machine named
`synthetic`, with noise between nights, noise between processes, a release of JAX half-way, and real
steps in a few cases.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from harness.frame.columns import COLUMNS, NUMBER, objects
from harness.frame.frame import Rows, to_frame
from harness.program.facts import TOTALS
from harness.stages.sampling import median_interval_ranks

STAGES = {
    **{"trace": 2e-3, "lower": 3e-3, "compile": 40e-3, "load": 5e-3},
    **{"first_call": 60e-3, "start": 0.4, "dispatch": 8e-6, "execute": 3e-4},
}
"""Stages, and about how many seconds each takes."""

FIRST_NIGHT = np.datetime64("2026-01-01")


def synthetic_frame(
    cases: int = 500,
    nights: int = 30,
    *,
    processes: int = 8,
    noise: float = 0.03,
    step: float = 1.3,
    stepped: float = 0.02,
    seed: int = 0,
) -> pd.DataFrame:
    """Return cases x 8 stages x nights rows; nothing in them was measured.

    Args:
        cases: how many; 8 of them make a workload, and differ in the axis `size`.
        nights: how many, a commit each.
        processes: samples of each row.
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
    samples = level[..., None] * np.exp(rng.normal(0, noise, (*shape, processes)))
    samples = samples.reshape(-1, processes)
    reference = np.exp(rng.normal(0, noise / 3, samples.shape)) * 1e-3
    night, case, stage = (index.ravel() for index in np.indices(shape))
    new = night >= half
    dates = (FIRST_NIGHT + np.arange(nights)).astype("datetime64[ms]")
    program = np.where(changed[case] & new, 2, 1)
    numbers = [name for name, kind in COLUMNS.items() if kind == NUMBER]
    columns: dict[str, Any] = {
        **dict.fromkeys(numbers, np.full(len(night), np.nan)),
        **_text(
            len(night), dirty="", static="", workload="", precision="", threads="", comparable=""
        ),
        **_text(len(night), machine="synthetic", python="3.12.4", target="cpu", status="ok"),
        **_text(len(night), transform="forward", scenario="off", unit="seconds", backend="xla"),
        **_text(
            len(night), effort="default", protocol="", version="1.synthetic", reason="", labels=""
        ),
        "commit": objects(f"{n:040x}" for n in range(1, nights + 1))[night],
        "commit_date": dates.view(np.int64)[night],
        "started_at": dates.view(np.int64)[night] + 7_200_000,
        "night": objects(str(date)[:10] for date in dates)[night],
        "jax": objects(["0.11.2", "0.12.0"])[new.astype(int)],
        "jaxlib": objects(["0.11.2", "0.12.0"])[new.astype(int)],
        "env": objects(["py3.12-jax0.11.2", "py3.12-jax0.12.0"])[new.astype(int)],
        "environment": objects(map(_environment, ("0.11.2", "0.12.0")))[new.astype(int)],
        "workload": objects(f"synthetic.Work{n // 8:04d}" for n in range(cases))[case],
        "stage": objects(STAGES)[stage],
        "fingerprint": objects(f"{n:08x}{built}" for n in range(cases) for built in (1, 2))[
            case * 2 + program - 1
        ],
        "n_processes": np.full(len(night), processes),
        "n_forked": np.zeros(len(night)),
        **{name: 100.0 * program for name in TOTALS},
        **_summaries(samples, samples / reference),
    }
    axes = [{"size": 2 ** (4 + n % 8)} for n in range(cases)]
    return to_frame([Rows(columns, axes, case)])


def _text(rows: int, **values: str) -> dict[str, Any]:
    return {name: objects([value])[np.zeros(rows, np.int64)] for name, value in values.items()}


def _environment(jax: str) -> str:
    return json.dumps({"jax": jax, "jaxlib": jax, "python": "3.12.4", "flags": {"XLA_FLAGS": "-"}})


def _summaries(samples: np.ndarray[Any, Any], ratios: np.ndarray[Any, Any]) -> dict[str, Any]:
    ranks = median_interval_ranks(samples.shape[1])
    ordered = np.sort(samples, axis=1)
    nothing = np.full(len(samples), np.nan)
    return {
        "value": np.median(samples, axis=1),
        "calibrated": np.median(ratios, axis=1),
        "low": nothing if ranks is None else ordered[:, ranks[0]],
        "high": nothing if ranks is None else ordered[:, ranks[1]],
        "samples": objects(samples.tolist()),
        "calibrated_samples": objects(ratios.tolist()),
        "cpu_samples": objects([] for _ in samples),
        "p90_samples": objects([] for _ in samples),
        "processes": objects([] for _ in samples),
        "cpu_processes": objects([] for _ in samples),
    }
