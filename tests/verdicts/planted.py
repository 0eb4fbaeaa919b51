"""Arms made of real processes: those of this project's own records, permuted and shifted.

A case was measured in six processes under each of three releases. What the k-th processes of a
sweep share, they keep; each arm gets eight of these eighteen, in random order.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from harness.frame.frame import axis_columns
from harness.frame.load import everything

RESULTS = Path(__file__).parents[2] / "docs" / "example-results"
STAGES = ("trace", "lower", "compile", "execute")
CASE = ("workload", "transform", "precision", "stage")


@cache
def _measured() -> tuple[pd.DataFrame, list[np.ndarray]]:
    """Return one row per case and stage, and each row's 18 values, seconds."""
    where = {"effort": "6x1", "scenario": "off", "target": "cpu", "stage": list(STAGES)}
    frame = everything(
        RESULTS,
        where={**where, "status": "ok", "commit": "587eb46cb45511994509464c2fbfa89b43f7c688"},
    )
    frame = frame[~frame["workload"].isin(["process", "reference"]) & (frame["threads"] == "")]
    keys = [*CASE, *axis_columns(frame)]
    own = frame.groupby([frame[key].map(str) for key in keys], sort=False)
    rows, values = [], []
    for _, part in own:
        if len(part) == 3 and all(len(samples) == 6 for samples in part["samples"]):
            logs = [np.log(samples) for samples in part["samples"]]
            off = [np.sqrt(6 / 5) * (one - one.mean()) for one in logs]
            rows.append(part.index[-1])
            values.append(part["value"].iloc[-1] * np.exp(np.concatenate(off)))
    return frame.loc[rows], values


def arms(seed: int) -> list[pd.DataFrame]:
    """Return two arms of eight processes each, in which nothing differs."""
    frame, values = _measured()
    rng = np.random.default_rng(seed)
    order = rng.permutation(18)
    return [
        frame.assign(
            samples=[own[mine].tolist() for own in values],
            p90_samples=[
                (own[mine] * 1.5).tolist() if stage == "execute" else []
                for own, stage in zip(values, frame["stage"], strict=True)
            ],
            processes=[[f"{side}{number}" for number in mine]] * len(frame),
            calibrated_samples=[[]] * len(frame),
            cpu_samples=[[]] * len(frame),
            n_processes=8,
            effort="default",
        ).reset_index(drop=True)
        for side, mine in enumerate((order[:8], order[8:16]))
    ]


def slowed(
    frame: pd.DataFrame,
    stage: str,
    factor: float = 1.0,
    processes: range = range(8),
    more_s: float = 0.0,
    column: str = "samples",
) -> pd.DataFrame:
    """Return an arm in which a stage takes longer, in all processes or in some."""
    changed = [
        [factor * s + more_s if n in processes else s for n, s in enumerate(own)]
        if name == stage
        else own
        for name, own in zip(frame["stage"], frame[column], strict=True)
    ]
    return frame.assign(**{column: changed})
