"""Results trees for tests: records and asv files as a sweep leaves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.records.schema import SCHEMA, Record, StageSamples, digest, to_raw
from harness.records.store import Store, store_path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ENV = "existing-py3.11-jax0.10.2"
CASE = (
    *("workload", "version", "axes", "transform", "precision", "target", "scenario"),
    *("machine", "env", "commit", "dirty", "night", "effort"),
)
"""Fields that records of one case share."""


def record(process: int = 0, /, stages: dict[str, Any] | None = None, **fields: Any) -> Record:
    """Return a record of process number `process`; `stages` gives samples in ns or StageSamples."""
    given = {"trace": [1e6]} if stages is None else stages
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "replicate": f"family.Work@cpu#{process}",
        "workload": "family.Work",
        "version": "1.aaaa",
        "axes": {"size": 8},
        "transform": "forward",
        "target": "cpu",
        "scenario": "off",
        "status": "ok",
        "machine": "box",
        "env": ENV,
        "commit": COMMIT,
        "commit_date_ms": 1_700_000_000_000,
        "protocol": "3 passes x 4 blocks",
        "effort": "default",
        "sweep": "s",
        "seed": 1,
        "started_at_ms": 1_700_000_001_000 + process,
        "python": "3.11.7",
        "jax": "0.10.2",
        "jaxlib": "0.10.2",
        "environment": to_raw({"device": "cpu"}),
        "stages": {
            stage: samples if isinstance(samples, StageSamples) else StageSamples(list(samples))
            for stage, samples in given.items()
        },
        **fields,
    }
    values.setdefault("key", digest(*(repr(values.get(name, "")) for name in CASE)))
    return Record(**values)


def failed(process: int = 0, reason: str = "ValueError: no", **fields: Any) -> Record:
    """Return the record of a process in which the case failed."""
    return record(process, {}, status="failed", reason=reason, **fields)


def write(results: Path, *records: Record) -> Path:
    """Append records where they belong in a tree, and return the last one's file."""
    for one in records:
        store = Store(store_path(results, one.machine, one.commit, one.env))
        store.append([one])
    return store.path


ASV_COLUMNS = [
    *("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"),
    *("stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"),
]


def write_asv(
    results: Path,
    benchmarks: dict[str, list[Any]],
    about: dict[str, Any] | None = None,
    machine: str = "box",
    env: str = ENV,
    **fields: Any,
) -> Path:
    """Write an asv result file, and benchmarks.json if `about` describes the benchmarks."""
    folder = results / machine
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "machine.json").write_text(json.dumps({"machine": machine, "version": 1}))
    if about is not None:
        (results / "benchmarks.json").write_text(json.dumps({**about, "version": 2}))
    path = folder / f"{COMMIT[:8]}-{env}.json"
    content = {
        "commit_hash": COMMIT,
        "env_name": env,
        "date": 1_700_000_000_000,
        "params": {"machine": machine, "python": "3.11", "cpu": "x"},
        "python": "3.11",
        "requirements": {"jax": "0.10.2"},
        "env_vars": {},
        "result_columns": ASV_COLUMNS,
        "results": benchmarks,
        "durations": {},
        "version": 2,
        **fields,
    }
    path.write_text(json.dumps(content))
    return path
