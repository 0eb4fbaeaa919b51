"""What a night measured, as data."""

from __future__ import annotations

import msgspec

from harness.records.json_file import Milliseconds

SCHEMA = 3
"""Version of the layout of :class:`NightSummary`."""


class Failure(msgspec.Struct):
    """A row without a value, or one that the last good night had and this one lacks."""

    workload: str
    stage: str
    status: str
    reason: str


class MeasuredEnvironment(msgspec.Struct):
    """What a night measured in one environment, and how it compares with the last good night."""

    environment: str
    """As records have it, such as `existing-py3.12-jax0.12.0.1`."""
    records: str
    """The file of its records in the machine's folder `records`."""
    run_exit_code: int
    """Of `harness run`."""
    rows: dict[str, int] = {}
    """How many rows have each status."""
    failures: list[Failure] = []
    against: str = ""
    """The last good night, or "" where there is none."""
    counts: dict[str, int] = {}
    """How many rows have each verdict."""
    verdict: int = 0
    """What comparing ended with, as `harness compare` would."""


class NightSummary(msgspec.Struct):
    """A finished night: `summary.json5` in its folder."""

    schema: int
    night: str
    machine: str
    commit: str
    effort: str
    options: list[str]
    """Further options of `harness run`."""
    started_at_ms: Milliseconds
    measured: list[MeasuredEnvironment]
    report: str = ""
    """Why there is no report; "" where there is one."""
    exit_code: int = 0
