"""Frames as `harness.load` returns them, of any size, without measuring."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd

from harness.frame.columns import COLUMNS, COUNT, LISTS, NUMBER, TEXT

CACHED = ("load", "first_call", "start")
HOSTILE = (
    *("<script>alert(1)</script>", "</script><b>", "{{ 7*7 }}", "ضرب المصفوفات"),
    *("<!--", "&lt;i&gt;", "x' onmouseover='alert(1)", "$&"),
)
SIZES = (64, 256, 1024, 4096)


def frame(
    workloads: Sequence[str],
    nights: int = 1,
    sizes: Sequence[int] = SIZES,
    stages: Sequence[str] = ("trace", "lower", "compile", "dispatch", "execute"),
    n: int = 8,
    seed: int = 0,
    step: float = 1.5,
) -> pd.DataFrame:
    """Return rows of every workload, size, stage and night.

    The first workload's compile takes `step` times as long from the middle night on.
    """
    random = np.random.default_rng(seed)
    shape = (nights, len(workloads), len(sizes), len(stages))
    night, work, size, stage = (axis.ravel() for axis in np.indices(shape))
    count = night.size
    base = 1e-3 * (1 + stage) * np.sqrt(np.asarray(sizes))[size] * (1 + work % 7)
    base = np.where((night >= nights / 2) & (work == 0) & (stage == 2), base * step, base)
    samples = base[:, None] * random.normal(1, 0.01, (count, n))
    days = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(nights), "D")
    median = np.median(samples, axis=1)
    columns: dict[str, object] = {
        "machine": "box",
        "commit": np.array([f"{number:040x}" for number in range(nights)], object)[night],
        "commit_date": days[night],
        "started_at": days[night] + pd.Timedelta("1h"),
        "env": "existing-py3.11-jax0.10.2",
        "python": "3.11.7",
        "jax": "0.10.2",
        "jaxlib": "0.10.2",
        "workload": np.array(workloads, object)[work],
        "version": "1.aaaa",
        "target": "cpu",
        "transform": "forward",
        "scenario": "off",
        "stage": np.array(stages, object)[stage],
        "unit": "seconds",
        "value": median,
        "calibrated": median / 1e-3,
        "low": samples.min(axis=1),
        "high": samples.max(axis=1),
        "n_processes": n,
        "samples": lists(samples),
        "calibrated_samples": lists(samples / 1e-3),
        "status": "ok",
        "fingerprint": np.array([f"f{number}" for number in range(len(workloads))], object)[work],
        "effort": "default",
        "night": np.array([f"{day:%Y-%m-%d}" for day in days], object)[night],
        "environment": json.dumps({"device": "cpu", "host": {"cores": 2}, "flags": {"A": "<1>"}}),
        "launches": 3.0 + work,
        "fusions": 2.0 + size,
        "flops": 1e6 * (1.0 + size),
    }
    empty = {NUMBER: np.nan, COUNT: 0, TEXT: ""}
    columns = {**{name: [[] for _ in range(count)] for name in LISTS}, **columns}
    data = {name: columns.get(name, empty.get(kind)) for name, kind in COLUMNS.items()}
    made = pd.DataFrame(data, index=range(count))
    made = made.astype({name: "str" for name, kind in COLUMNS.items() if kind == TEXT})
    made["size"] = np.asarray(sizes, object)[size]
    made.attrs["problems"] = {"torn": 0, "corrupt": 0, "other_schema": 0, "unreadable": 0}
    return made


def lists(samples: np.ndarray) -> np.ndarray:
    """Return an array of lists, one per row."""
    found = np.empty(len(samples), object)
    found[:] = samples.tolist()
    return found


def cached(workload: str) -> pd.DataFrame:
    """Return a case that was measured with an empty and a filled persistent cache."""
    parts = []
    for scenario, stages in (
        ("cold", ("trace", "lower", "compile", "first_call", "start")),
        ("warm", ("trace", "lower", "load", "first_call", "start")),
    ):
        part = frame([workload], stages=stages).assign(scenario=scenario, entry_bytes=12e3)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
