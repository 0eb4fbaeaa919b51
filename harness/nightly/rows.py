"""Count what a night measured, and hold it against what its suite declares."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path

from harness.asv.call import AsvCall
from harness.declare.workload import Case, name_of
from harness.nightly.project import Project
from harness.nightly.state import Book, Environment, Night, Rows
from harness.records.schema import plain_axes
from harness.records.store import Store, store_path

LISTED = 20
"""So many reasons of failed cases are kept with the night; the records hold all of them."""


def records_of(results: Path, night: Night, env: str) -> Path:
    """Return the file of one night's records of one environment."""
    return store_path(results, night.machine, night.commit, env, night.night)


def declared(project: Project, night: Night) -> set[tuple[str, str, str]]:
    """Return the cases that the suite declares for this machine: workload, case and scenario.

    Modules that cannot be imported declare none; asv then has failed, and says why.
    """
    from harness.declare import discovery
    from harness.engine import sweeping
    from harness.engine.plan import Plan
    from harness.stages import sampling

    call = AsvCall(bench=tuple(night.bench))
    context = sweeping.local_context(
        project.results, project.benchmarks, night.machine, night.night
    )
    found = set()
    for workload in discovery.discover(project.benchmarks).workloads:
        keep = functools.partial(call.selects, workload)
        plan = Plan([workload], context, sweeping.Options(sampling.effort(night.effort), keep=keep))
        for share in plan.shares:
            found |= {(name_of(workload), ref.id, share.scenario) for ref in share.refs}
        for share, ref, _, _ in plan.skipped:
            found.add((name_of(workload), ref.id, share.scenario))
    return found


def count(
    found: Environment, wanted: set[tuple[str, str, str]], night: Night, results: Path
) -> Rows:
    """Count the rows of one environment."""
    from harness.frame.choose import INSTRUMENTS
    from harness.frame.load import frame_of

    rows = Rows(len(wanted), [], 0, 0, 0, 0, {}, {})
    file = records_of(results, night, found.env)
    records = [r for r in Store(file).read() if r.workload not in INSTRUMENTS]
    known = {
        (
            record.workload,
            Case(plain_axes(record.axes), record.transform, record.target, record.precision).id,
            record.scenario,
        )
        for record in records
    }
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


def shortfall(found: Environment, night: Night, book: Book) -> tuple[str, list[str]]:
    """Return the last good night, "" for none, and the workloads that had more ok rows then.

    A device that is gone shows only here: its cases are no longer declared.
    """
    before = book.last_good(night, found.name)
    if before is None or found.rows is None:
        return "", []
    old = next(one.rows for one in before.measured() if one.name == found.name)
    now = found.rows.ok_by_workload
    return before.night, [
        f"{workload}: {now.get(workload, 0)} ok rows, {number} before"
        for workload, number in sorted(old.ok_by_workload.items() if old else ())
        if now.get(workload, 0) < number
    ]
