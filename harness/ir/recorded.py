"""What the records of two commits say of the same cases: the facts, and the texts if kept."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.declare import discovery
from harness.declare.workload import Case
from harness.errors import HarnessError, UsageError
from harness.program import kept
from harness.program.facts import Facts
from harness.records.environment import commit_of
from harness.records.schema import Problems, Record, case_of, read_file


@dataclass(frozen=True)
class Recorded:
    """One case as it was at one commit, by the record that was written last."""

    commit: str
    facts: Facts
    fingerprint: str
    programs: Path

    def texts(self) -> kept.Kept | None:
        """Return the program's texts, or None if they were not kept."""
        return kept.read(self.programs, self.fingerprint)


@dataclass(frozen=True)
class Pair:
    """One case at two commits."""

    label: str
    a: Recorded
    b: Recorded


def pairs(
    results: Path,
    repository: Path,
    commits: tuple[str, str],
    pattern: str,
    choices: Sequence[str],
    problems: Problems,
) -> list[Pair]:
    """Return the cases that both commits have facts of, taken in the same environment.

    Args:
        results: a results tree.
        repository: a folder in the repository that knows the commits by name.
        commits: revisions, or beginnings of hashes as they stand in the records.
        pattern: a regular expression for the name of the workload, or its very name.
        choices: `AXIS=VALUE` texts; see :func:`harness.declare.discovery.case_filter`.
        problems: takes what could not be read.

    Raises:
        UsageError: the pattern is wrong, or the results know nothing of a commit.
        HarnessError: there is nothing to compare; the text says why.
    """
    try:
        matches = re.compile(pattern).search
    except re.error as error:
        raise UsageError(f"{pattern!r} is no regular expression: {error}.") from None
    keep = discovery.case_filter(choices)
    a, b = (_side(results, repository, commit, matches, keep, problems) for commit in commits)
    exact = {key for key in {**a, **b} if pattern in (key[0], key[0].rpartition(".")[2])}
    common = [key for key in a if key in b and (not exact or key in exact)]
    if not common:
        raise HarnessError(
            f"No case of {pattern!r} has facts at both {commits[0]!r} and {commits[1]!r} in one "
            f"environment: {_environments(a)} on one side, {_environments(b)} on the other."
        )
    environments = {key[3:] for key in common}
    return [
        Pair(" ".join(filter(None, key[:2] + (key[3:] if len(environments) > 1 else ()))), *sides)
        for key in common
        for sides in [(a[key], b[key])]
    ]


_Key = tuple[str, str, str, str, str]
"""Workload, label of the case, its identity, machine, environment."""


def _environments(side: dict[_Key, Recorded]) -> str:
    return ", ".join(sorted({" ".join(key[3:]) for key in side}))


def _side(
    results: Path,
    repository: Path,
    commit: str,
    matches: Callable[[str], object],
    keep: Callable[[Case], bool],
    problems: Problems,
) -> dict[_Key, Recorded]:
    full = commit_of(repository, commit).hash or commit
    found = list(_records(results, full, problems))
    if not found:
        raise UsageError(
            f"{results} holds no records of commit {commit!r}. `harness show --all` lists what "
            "was measured; measure it with `harness run` at that commit."
        )
    side: dict[_Key, Recorded] = {}
    measured = 0
    for machine_folder, record in found:
        case = case_of(record)
        if record.comparison is not None or not matches(record.workload) or not keep(case):
            continue
        measured += 1
        if record.facts is None:
            continue
        key = (record.workload, case.label, case.id, record.machine, record.env)
        programs = machine_folder / "programs"
        side[key] = Recorded(record.commit, record.facts, record.fingerprint, programs)
    if not measured:
        names = ", ".join(sorted({r.workload for _, r in found} - {"process", "reference"}))
        raise HarnessError(f"No such case was measured at {commit!r}. There are: {names}.")
    if not side:
        raise HarnessError(
            f"The records of {commit!r} hold no facts of the program: an earlier version of the "
            "harness wrote them, or nothing was compiled. Measure again at that commit with "
            "`harness run --fresh`, or compare the sources with --diff commit:REV."
        )
    return side


def _records(results: Path, commit: str, problems: Problems) -> Iterator[tuple[Path, Record]]:
    if not re.fullmatch(r"[0-9a-f]{4,}", commit):
        return
    for file in sorted(results.glob(f"*/records/{glob.escape(commit[:8])}*.jsonl")):
        for record in read_file(file, problems):
            if record.commit.startswith(commit):
                yield file.parent.parent, record
