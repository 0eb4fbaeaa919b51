"""Two programs side by side: built, or as records of two commits have them."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.errors import HarnessError, UsageError, find_name, match_names
from harness.ir import build
from harness.ir.build import changed
from harness.measure.job import Job
from harness.measure.process import packages_of
from harness.program.difference import facts_difference, text_difference
from harness.program.facts import Facts
from harness.records import kept
from harness.records.git import checked_out, commit_of
from harness.records.schema import Problems, Record, case_of, read_file
from harness.workload import discovery
from harness.workload.workload import TRANSFORMS, Case, Workload

KINDS = {
    "case": "case:AXIS=VALUE[,AXIS=VALUE], another case of the workload",
    "transform": "transform:NAME, such as transform:gradient",
    "target": "target:NAME, such as target:gpu:h200",
    "commit": "commit:REV, the same case with the benchmarks and packages of that commit",
    "records": "records:REV..REV, two commits as they were measured",
}
"""What a case can be compared with, and how that is written."""


@dataclass(frozen=True)
class ProgramSide:
    """A program in a comparison."""

    label: str
    fingerprint: str
    facts: Facts
    text: str | None
    """None where it was not kept."""
    constants: str = ""
    """Of their values; "" of what was not built just now."""


@dataclass(frozen=True)
class ProgramComparison:
    """What is to be said of two programs."""

    same: bool
    """Whether their optimised HLO is equal."""
    stored: bool
    """Whether both texts are at hand."""
    constants: bool
    """Whether the values of their constants differ."""
    facts: str
    """What differs in the facts, in one line."""
    text: str
    """The unified difference of the texts."""
    differ: bool


def parse(what: str) -> tuple[str, str]:
    """Return the kind of a comparison and what follows its colon, or raise with what there is."""
    kind, colon, rest = what.partition(":")
    if kind not in KINDS or not colon or not rest:
        kinds = "\n  ".join(KINDS.values())
        raise UsageError(f"--diff {what!r}: expected one of\n  {kinds}")
    return kind, rest


def built(
    workload: type[Workload],
    case: Case,
    kind: str,
    rest: str,
    stage: str,
    on_step: Callable[[str, str], None],
) -> tuple[ProgramSide, ProgramSide]:
    """Build a case and what it is compared with, and return both.

    `kind` is one of :data:`KINDS` but `records`; `rest` is what follows its colon. `on_step` is
    called with the label of the case and with each step of its building.
    """

    def side(wanted: build.BuildJob) -> ProgramSide:
        made = build.build(wanted, lambda step: on_step(wanted.label, step))
        facts = made.facts or Facts()
        return ProgramSide(wanted.label, made.fingerprint, facts, made.text, made.constants)

    def of_tree(tree: Path, job: Job, when: str) -> ProgramSide:
        there = {**os.environ, **job.environment}
        with packages_of(Path(job.source.file).parents[1], tree, there) as packages:
            job = msgspec.structs.replace(job, environment={**job.environment, **packages})
            return side(msgspec.structs.replace(now, job=job, label=f"{now.label} {when}"))

    now = build.job(workload, case, stage, with_facts=True)
    if kind == "commit":
        with checked_out(now.job.source, rest) as (top, tree, source, commit):
            job = msgspec.structs.replace(now.job, source=source, x64=False)  # its own to say
            return of_tree(tree, job, f"at {commit[:8]}"), of_tree(top, now.job, "now")
    if kind == "case":
        other = changed(workload, case, rest)
    elif kind == "transform":
        other = dataclasses.replace(case, transform=find_name(rest, TRANSFORMS, kind))
    else:
        other = dataclasses.replace(case, target=rest)
    wanted = build.job(workload, other, stage, with_facts=True)  # raises before anything is built
    if wanted.label == now.label:  # `forward` and `cpu` are not shown
        wanted = msgspec.structs.replace(wanted, label=f"{wanted.label} ({rest})")
    return side(now), side(wanted)


def compare(a: ProgramSide, b: ProgramSide, stage: str) -> ProgramComparison:
    """Compare two programs: their fingerprints, their facts, and their texts of one stage."""
    same = bool(a.fingerprint) and a.fingerprint == b.fingerprint
    changes = facts_difference(a.facts, b.facts)
    both = a.text is not None and b.text is not None
    # Equal fingerprints are equal optimised HLO; what came before it may differ all the same.
    text = "" if same and stage == "hlo" else text_difference(a.text or "", b.text or "")
    text = text if both else ""
    other_values = a.constants != b.constants
    differ = bool(changes or text or other_values or not (same or both))
    return ProgramComparison(same, both, other_values, changes, text, differ)


# As records have them

_Key = tuple[str, str, str, str, str]
"""Workload, label of the case, its identity, machine, environment."""

_Recorded = dict[_Key, tuple[Record, Path]]
"""The record of each case that was written last, and the folder of the texts that were kept."""


def from_records(
    results: Path,
    repository: Path,
    revisions: str,
    pattern: str,
    choices: Sequence[str],
    stage: str,
    problems: Problems,
) -> Iterator[tuple[ProgramSide, ProgramSide]]:
    """Yield the cases that records of both commits have facts of, of one environment.

    `revisions` is `A..B`: revisions, or beginnings of hashes as they stand in the records;
    `repository` knows the commits by name. Texts of one `stage` are compared, `stablehlo` or `hlo`.
    `problems` takes what could not be read.
    """
    a, dots, b = revisions.partition("..")
    if not (a and dots and b) or ".." in b:
        raise UsageError(f"--diff 'records:{revisions}': expected {KINDS['records']}.")
    if stage == "jaxpr":
        raise UsageError("Records keep no jaxpr; --stage stablehlo and hlo can be compared.")
    keep = discovery.case_filter(choices)
    first, second = (_side(results, repository, one, pattern, keep, problems) for one in (a, b))
    exact = {key for key in {**first, **second} if pattern in (key[0], key[0].rpartition(".")[2])}
    common = [key for key in first if key in second and (not exact or key in exact)]
    if not common:
        there = [", ".join(sorted({" ".join(key[3:]) for key in one})) for one in (first, second)]
        raise HarnessError(
            f"No case of {pattern!r} has facts at both {a!r} and {b!r} in one environment: "
            f"{there[0]} on one side, {there[1]} on the other."
        )
    several = len({key[3:] for key in common}) > 1
    for key in common:
        label = " ".join(filter(None, key[:2] + (key[3:] if several else ())))
        yield _recorded(label, *first[key], stage), _recorded(label, *second[key], stage)


def _recorded(label: str, record: Record, programs: Path, stage: str) -> ProgramSide:
    texts = kept.read(programs, record.fingerprint)
    text = None if texts is None else texts.hlo if stage == "hlo" else texts.stablehlo
    label = f"{label} at {record.commit[:8]}"
    return ProgramSide(label, record.fingerprint, record.facts or Facts(), text)


def _side(
    results: Path,
    repository: Path,
    commit: str,
    pattern: str,
    keep: Callable[[Case], bool],
    problems: Problems,
) -> _Recorded:
    full = commit_of(repository, commit).hash or commit
    is_hash = re.fullmatch(r"[0-9a-f]{4,}", full)
    files = sorted(results.glob(f"*/records/{full[:8]}*.jsonl")) if is_hash else []
    records = [
        (file.parent.parent / "programs", record)
        for file in files
        for record in read_file(file, problems)
        if record.commit.startswith(full) and record.comparison is None
    ]
    if not records:
        raise UsageError(
            f"{results} holds no records of commit {commit!r}. `harness show --all` lists what "
            "was measured; measure it with `harness run` at that commit."
        )
    names = sorted({record.workload for _, record in records} - {"process", "reference"})
    chosen = match_names(pattern, names, "workload")
    cases = [
        (programs, record, case)
        for programs, record in records
        if record.workload in chosen and keep(case := case_of(record))
    ]
    if not cases:
        raise HarnessError(
            f"No such case was measured at {commit!r}. There are: {', '.join(names)}."
        )
    side = {
        (record.workload, case.label, case.id, record.machine, record.env): (record, programs)
        for programs, record, case in cases
        if record.facts is not None
    }
    if not side:
        raise HarnessError(
            f"The records of {commit!r} hold no facts of the program: an earlier version of the "
            "harness wrote them, or nothing was compiled. Measure again at that commit with "
            "`harness run --fresh`, or compare the sources with --diff commit:REV."
        )
    return side
