"""What a night measured, against what its suite declares, and its verdicts.

These are against the last good night, and of the newest release against the previous. Comparing is
`harness compare` on the two files of records, as a process of its own.
"""

from __future__ import annotations

import functools
import json
import warnings
from pathlib import Path
from typing import Any

import msgspec

from harness.asv.call import AsvCall
from harness.asv.project import AsvProject
from harness.declare import discovery
from harness.declare.workload import name_of
from harness.engine.context import Options, local_context
from harness.engine.plan import Plan
from harness.errors import HarnessError, StoreError
from harness.frame.differences import environment_difference
from harness.frame.frame import INSTRUMENTS
from harness.frame.load import frame_of
from harness.nightly.environments import Runner, last_line, release_numbers
from harness.nightly.state import Environment, Night, Nights, RowCounts, Verdicts
from harness.records import json_file
from harness.records.files import OWN
from harness.records.schema import Problems, case_of, read_file
from harness.records.store import Store
from harness.stages import sampling

DECIDED = (0, 1, 4, 7)
"""Exit codes of `harness compare`: nothing slower, something slower, nothing comparable, and
something broken."""

WHOLE = ("machine", "target", "scenario", "stage")
"""Columns that tell the stages apart that are judged as a whole."""

Number = float | None

Measured = tuple[Night, Environment]
"""One environment as a night measured it."""

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


class ComparisonFailed(HarnessError):
    """A comparison ended without verdicts; the night goes on."""


def pairs(nights: Nights, night: Night) -> list[tuple[str, Measured, Measured]]:
    """Return what is to be compared: the kind, what was before, and what is now."""
    found: list[tuple[str, Measured, Measured]] = []
    for now in night.measured():
        if before := nights.last_good(night, now.name):
            found.append(("night", before, (night, now)))
    releases = sorted(
        (one for one in night.measured() if "dev" not in one.versions["jax"]),
        key=lambda one: release_numbers(one.versions["jax"]),
    )
    if len(releases) > 1:
        found.append(("release", (night, releases[-2]), (night, releases[-1])))
    return found


def compare(
    kind: str, before: Measured, now: Measured, nights: Nights, runner: Runner, results: Path
) -> Verdicts:
    """Compare two environments of two nights, or of one.

    Raises:
        ComparisonFailed: with what `harness compare` said last.
    """
    (old_night, old), (night, new) = before, now
    files = [n.records(results, e.env) for n, e in (before, now)]
    name = f"verdicts-{kind}-{new.name}{OWN}"
    table = nights.own(night.night) / name
    log = table.with_suffix(".log")
    options = ["--results", str(results), "--format", "json", "-o", str(table)]
    code = runner.harness("compare", *map(str, files), *options, log=log)
    if code not in DECIDED or (code != 4 and not table.is_file()):
        raise ComparisonFailed(f"harness compare ended with {code}: {last_line(log)}")
    said = json.loads(table.read_text(encoding="utf-8")) if table.is_file() else {}
    first = [next(read_file(file, Problems()), None) for file in files]
    environments = (bytes(one.environment).decode() if one else "" for one in first)
    slower = {
        tuple(row[name] for name in WHOLE)
        for row in read_rows(table)
        if row.get("stage_verdict") == "slower"
    }
    return Verdicts(
        environment=new.name,
        against=old_night.night if kind == "night" else old.name,
        kind=kind,
        noisy=old_night.noisy,
        difference=environment_difference(*environments),
        commits=(old_night.commit, night.commit),
        counts={verdict: count for verdict, count in said.get("counts", {}).items() if count},
        file=name,
        programs=said.get("programs", []),
        stages=said.get("stages", []),
        slower_stages=len(slower),
        inside=[one["text"] for one in said.get("inside", [])],
    )


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Return the rows that `harness compare` or `harness history` wrote as JSON; [] if none."""
    try:
        found: Any = json_file.decode(json_file.data(file), Any)
        if isinstance(found, dict):
            found = found.get("rows", [])
        msgspec.convert(found, list[_Row])
        rows: list[dict[str, Any]] = found
        return rows
    except FileNotFoundError:
        return []
    except (json_file.DamagedError, msgspec.ValidationError) as error:
        raise StoreError(f"{file} cannot be read: {error}. Remove it, and run again.") from error


class _Row(msgspec.Struct):
    """What is read of a row of verdicts or of change points."""

    workload: str
    stage: str
    verdict: str = ""
    stage_verdict: str = ""
    machine: str = ""
    ratio: Number = None
    low: Number = None
    high: Number = None
    a_s: Number = None
    b_s: Number = None
    before_s: Number = None
    after_s: Number = None
