"""A night on one machine: measure in each environment, compare with the last good night, report.

A night that was killed measures what its records lack; there is no other state. A finished night
leaves a summary, by which later nights find what to compare with.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import util
from pathlib import Path

from harness import __version__
from harness.errors import ExitCode, HarnessError, UsageError
from harness.frame.load import everything
from harness.frame.pairs import Arm, pair
from harness.measure import containment
from harness.output import nightly as words
from harness.records import environment, json_file
from harness.records.files import OWN
from harness.records.git import commit_of
from harness.records.nights import SCHEMA, Failure, MeasuredEnvironment, NightSummary
from harness.records.schema import INSTRUMENTS, Problems, Record, read_file
from harness.records.store import machine_folder, store_path
from harness.verdicts.compare import Comparison, judged_pairs
from harness.verdicts.table import exit_code_of

YOUNG_MS = 24 * 3600 * 1000
"""A night without a summary is continued for so long without being named."""

MOST_FAILURES = 20
"""So many failed rows of an environment are listed; the records hold all of them."""

IGNORED = "*.log\n*.html\n.*.part\n"
"""What of the nights stays out of git: large, or of this machine only."""

_LOOK = """
import importlib.metadata as m, importlib.util as u, sys
missing = [name for name in ("harness", "jax", "jaxlib") if not u.find_spec(name)]
if missing:
    sys.exit(f"{', '.join(missing)} cannot be imported there")
import harness
print(harness.__version__, f"{sys.version_info[0]}.{sys.version_info[1]}", m.version("jax"))
"""


class UnusableEnvironmentError(HarnessError):
    """An environment cannot be measured in."""

    exit_code = ExitCode.UNUSABLE


def run(
    pythons: Sequence[Path],
    machine: str,
    night: str,
    effort: str,
    options: Sequence[str],
    benchmarks: Path,
    results: Path,
    notify: Callable[[str], None],
) -> tuple[NightSummary, list[Comparison | None]]:
    """Measure what the records of a night lack, compare, and write the report and the summary.

    Args:
        pythons: the interpreters of the environments.
        machine: its name in the results.
        night: its name; "" for the one that is due.
        effort: of `harness run`.
        options: further options of `harness run`.
        benchmarks: the folder of workloads.
        results: the results tree.
        notify: takes a line about what is being done.

    Returns:
        The summary, and the comparison of each environment; None without an earlier night.

    Raises:
        UsageError: the night's name is none, or there is no commit to file results under.
        UnusableEnvironmentError: an environment cannot be used; nothing has been measured.
    """
    containment.need()
    commit = commit_of(benchmarks, exclude=results).hash
    if not commit:
        raise UsageError(
            f"{benchmarks} is in no git repository with a commit, and results are filed under one: "
            "commit first."
        )
    folder = machine_folder(results, machine)
    environments = {_environment(python): python for python in pythons}
    night = environment.night(night) or _due(folder, commit)
    own = folder / "nights" / night
    own.mkdir(parents=True, exist_ok=True)
    (own.parent / ".gitignore").write_text(IGNORED)
    summary = NightSummary(SCHEMA, night, machine, commit, effort, list(options), _now_ms(), [])
    asked = ["--night", night, "--effort", effort, "--machine", machine]
    asked += ["--benchmarks", str(benchmarks), "--results", str(results), *options]
    for name, python in environments.items():
        log = own / f"{name}.log"
        notify(words.MEASURING.format(night=night, environment=name, log=log))
        code = _harness(python, "run", *asked, log=log)
        file = store_path(results, machine, commit, name, night)
        summary.measured.append(MeasuredEnvironment(name, file.name, code))
        if first := _first_record(file):
            summary.started_at_ms = min(summary.started_at_ms, first.started_at_ms)
    comparisons = [_compare(one, summary, folder, results) for one in summary.measured]
    notify(words.REPORTING.format(night=night))
    summary.report = _report(results, own)
    summary.exit_code = int(_exit_code(summary))
    json_file.write(own / f"summary{OWN}", summary)
    return summary, comparisons


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _environment(python: Path) -> str:
    """Return what records call the environment of an interpreter."""
    try:
        done = subprocess.run([python, "-c", _LOOK], capture_output=True, text=True, check=False)
        lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    except OSError as error:
        raise UnusableEnvironmentError(f"--python {python}: {error.strerror}.") from None
    if done.returncode or not lines:
        raise UnusableEnvironmentError(
            f"--python {python}: {lines[-1] if lines else 'no answer'}. Expected an environment "
            "with JAX and jax-harness: install both there."
        )
    version, minor, jax = lines[-1].split()
    if version != __version__:
        raise UnusableEnvironmentError(
            f"--python {python} has jax-harness {version}, and this is {__version__}: install the "
            "same version there."
        )
    return environment.existing_env_name(minor, jax)


def _first_record(file: Path) -> Record | None:
    return next(read_file(file, Problems()), None) if file.exists() else None


def _due(folder: Path, commit: str) -> str:
    """Return the newest night of a commit that is young and not finished, or that of today."""
    begun = [
        (first.started_at_ms, first.night)
        for first in map(_first_record, folder.glob("records/*.jsonl"))
        if first and first.night and first.commit == commit
        if _now_ms() - first.started_at_ms < YOUNG_MS
        if not (folder / "nights" / first.night / f"summary{OWN}").exists()
    ]
    return max(begun)[1] if begun else datetime.now(UTC).strftime("%Y-%m-%d")


def _harness(python: Path, command: str, *arguments: str, log: Path) -> int:
    """Run a command of the harness to its end, or this process's; return its exit code."""
    variables = {name: value for name, value in os.environ.items() if name != "ASV_ENV_NAME"}
    line = [str(python), "-m", "harness", command, *arguments]
    with log.open("ab") as out:
        return subprocess.run(
            line,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
            preexec_fn=containment.dying_with_caller(),
        ).returncode


def _compare(
    one: MeasuredEnvironment, summary: NightSummary, folder: Path, results: Path
) -> Comparison | None:
    """Count the rows of an environment, and compare them with the last good night's."""
    file = folder / "records" / one.records
    if not file.exists():
        return None
    now = everything(file)
    now = now[~now["workload"].isin(INSTRUMENTS)]
    one.rows = {str(status): int(n) for status, n in now["status"].value_counts().items()}
    bad = now[now["status"].isin(["failed", "refused"])].head(MOST_FAILURES)
    columns = (bad[name].astype(str) for name in ("workload", "stage", "status", "reason"))
    one.failures = [Failure(*row) for row in zip(*columns, strict=True)]
    earlier = _last_good(one, summary, folder)
    if earlier is None:
        return None
    one.against, before = earlier
    arms = Arm(f"night {one.against}", everything(before)), Arm(f"night {summary.night}", now)
    comparison = judged_pairs(pair(*arms), results)
    verdicts = comparison.frame["verdict"].value_counts()
    one.counts = {str(verdict): int(n) for verdict, n in verdicts.items()}
    one.verdict = int(exit_code_of(comparison.frame))
    one.failures += [
        Failure(a["workload"], a["stage"], "missing", f"measured on the night {one.against}")
        for a, b in comparison.pairs.pairs
        if b is None and a is not None and a["status"] == "ok"
    ]
    return comparison


def _last_good(
    one: MeasuredEnvironment, summary: NightSummary, folder: Path
) -> tuple[str, Path] | None:
    """Return the last night before that measured the same in an environment, and its records.

    A night of another effort, or with other options, says nothing of the cases it left out.
    """
    good = []
    for file in folder.glob(f"nights/*/summary{OWN}"):
        with contextlib.suppress(json_file.DamagedError, FileNotFoundError):
            past = json_file.read(file, NightSummary)
            alike = (past.effort, past.options) == (summary.effort, summary.options)
            if alike and past.started_at_ms < summary.started_at_ms:
                good += [
                    (past.started_at_ms, past.night, folder / "records" / measured.records)
                    for measured in past.measured
                    if measured.environment == one.environment and measured.rows.get("ok")
                ]
    there = [each for each in good if each[2].exists()]
    return max(there)[1:] if there else None


def _can_report() -> bool:
    return util.find_spec("altair") is not None


def _report(results: Path, own: Path) -> str:
    """Write the report of all results; return why there is none, or ""."""
    if not _can_report():
        return words.NO_FIGURES
    page, log = own / "report.html", own / "report.log"
    code = _harness(Path(sys.executable), "report", "-r", str(results), "-o", str(page), log=log)
    return words.REPORT_ENDED.format(code=code) if code else ""


def _exit_code(summary: NightSummary) -> ExitCode:
    """Return what a night ends with: the gravest of its parts."""
    verdicts = {one.verdict for one in summary.measured}
    for code, holds in (
        (ExitCode.UNUSABLE, any(not set(one.rows) - {"skipped"} for one in summary.measured)),
        (ExitCode.BROKEN, ExitCode.BROKEN in verdicts),
        (ExitCode.SOME_FAILED, any(one.failures or one.run_exit_code for one in summary.measured)),
        (ExitCode.WORSE, ExitCode.WORSE in verdicts),
        (ExitCode.INCOMPLETE, summary.report and _can_report()),
    ):
        if holds:
            return code
    return ExitCode.FINE
