"""Count what a night measured, and hold it against what its suite declares."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path

from harness.asv.call import AsvCall
from harness.asv.project import AsvProject
from harness.declare import discovery
from harness.declare.workload import name_of
from harness.engine.context import Options, local_context
from harness.engine.plan import Plan
from harness.frame.frame import INSTRUMENTS
from harness.frame.load import frame_of
from harness.nightly.state import Environment, Night, RowCounts
from harness.records.schema import case_of
from harness.records.store import Store
from harness.stages import sampling

LISTED = 20
"""So many reasons of failed cases are kept with the night; the records hold all of them."""

Cases = set[tuple[str, str, str]]
"""Workload, case and scenario."""


def declared(project: AsvProject, night: Night) -> Cases:
    """Return the cases that the suite declares for this machine.

    Modules that cannot be imported declare none; asv then has failed, and says why.
    """
    call = AsvCall(bench=tuple(night.bench))
    context = local_context(project.results, project.benchmarks, night.machine, night.night)
    cases: Cases = set()
    for workload in discovery.discover(project.benchmarks).workloads:
        keep = functools.partial(call.selects, workload)
        plan = Plan([workload], context, Options(sampling.effort(night.effort), keep=keep))
        refs = [(group, ref) for group in plan.groups for ref in group.refs]
        refs += [(group, ref) for group, ref, _ in plan.skipped]
        cases |= {
            (name_of(workload), ref.id, ref.scenario or group.scenario) for group, ref in refs
        }
    return cases


def count(environment: Environment, wanted: Cases, night: Night, results: Path) -> RowCounts:
    """Count the rows of one environment."""
    rows = RowCounts(len(wanted), [], 0, 0, 0, 0, {}, {})
    read = Store(night.records(results, environment.env)).read()
    records = [record for record in read if record.workload not in INSTRUMENTS]
    known = {(record.workload, case_of(record).id, record.scenario) for record in records}
    rows.missing = [" ".join(case) for case in sorted(wanted - known)]
    if not records:
        return rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # damaged lines are named by every command that loads
        frame = frame_of(records)
    for status, number in frame["status"].value_counts().items():
        setattr(rows, str(status), int(number))
    ok = frame[frame["status"] == "ok"]
    rows.ok_by_workload = {str(k): int(v) for k, v in ok["workload"].value_counts().items()}
    bad = frame[frame["status"].isin(["failed", "refused"])]
    for _, row in bad.iterrows():
        if len(rows.reasons) < LISTED:
            rows.reasons.setdefault(f"{row['workload']} {row['stage']}", str(row["reason"])[:300])
    return rows
