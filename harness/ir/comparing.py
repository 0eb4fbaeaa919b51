"""Two sides of a comparison: what to set against a case, and what there is to say of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.declare.workload import Case, Workload
from harness.errors import UsageError
from harness.ir import building, choosing, recorded
from harness.program.difference import facts_difference, summary, text_difference
from harness.program.facts import Facts
from harness.records import worktree
from harness.records.schema import Problems

KINDS = {
    "case": "case:AXIS=VALUE[,AXIS=VALUE], another case of the workload",
    "transform": "transform:NAME, such as transform:gradient",
    "target": "target:NAME, such as target:gpu:h200",
    "commit": "commit:REV, the same case as the benchmarks were at that commit",
    "records": "records:REV..REV, two commits as they were measured",
}
"""What a case can be compared with, and how that is written."""


@dataclass(frozen=True)
class Side:
    """A program in a comparison."""

    label: str
    fingerprint: str
    facts: Facts
    text: str | None
    """None where it was not kept."""


@dataclass(frozen=True)
class Comparison:
    """What is to be said of two programs."""

    a: Side
    b: Side
    verdict: str
    facts: str = ""
    """What differs in the facts, in one line."""
    text: str = ""
    """The unified difference of the texts."""
    differ: bool = False


def parse(what: str) -> tuple[str, str]:
    """Return the kind of a comparison and what follows its colon, or raise with what there is."""
    kind, colon, rest = what.partition(":")
    if kind not in KINDS or not colon or not rest:
        known = "\n  ".join(KINDS.values())
        raise UsageError(f"--diff {what!r}: expected one of\n  {known}")
    return kind, rest


def built(
    workload: type[Workload],
    case: Case,
    kind: str,
    rest: str,
    stage: str,
    on_step: Callable[[str, str], None],
) -> tuple[Side, Side]:
    """Build a case and what it is compared with, and return both.

    `kind` is one of :data:`KINDS` but `records`; `rest` is what follows its colon. `on_step` is
    called with the label of the case and with each step of its building.

    Raises:
        UsageError: `rest` names nothing that there is.
        building.BuildError: one of the two cannot be built.
    """

    def side(wanted: building.BuildJob) -> Side:
        found = building.build(wanted, lambda step: on_step(wanted.label, step))
        return Side(wanted.label, found.fingerprint, found.facts or Facts(), found.text)

    now = building.job(workload, case, stage, with_facts=True)
    if kind == "commit":
        with worktree.checked_out(now.job.source, rest) as (source, commit):
            job = msgspec.structs.replace(now.job, source=source, x64=False)  # its own to say
            label = f"{now.label} at {commit[:8]}"
            then = side(msgspec.structs.replace(now, job=job, label=label))
        return then, side(msgspec.structs.replace(now, label=f"{now.label} now"))
    if kind == "case":
        other = choosing.changed(workload, case, rest)
    elif kind == "transform":
        other = dataclasses.replace(case, transform=choosing.check_transform(rest))
    else:
        other = dataclasses.replace(case, target=rest)
    wanted = building.job(
        workload, other, stage, with_facts=True
    )  # raises before anything is built
    if wanted.label == now.label:  # `forward` and `cpu` are not shown
        wanted = msgspec.structs.replace(wanted, label=f"{wanted.label} ({rest})")
    return side(now), side(wanted)


def from_records(
    results: Path,
    repository: Path,
    revisions: str,
    pattern: str,
    choices: Sequence[str],
    stage: str,
    problems: Problems,
) -> Iterator[tuple[Side, Side]]:
    """Yield each case that the records of two commits hold facts of; see :mod:`.recorded`."""
    commits = tuple(revisions.split(".."))
    if len(commits) != 2 or not all(commits):
        raise UsageError(f"--diff 'records:{revisions}': expected {KINDS['records']}.")
    if stage == "jaxpr":
        raise UsageError("Records keep no jaxpr; --stage stablehlo and hlo can be compared.")
    a, b = commits
    for pair in recorded.pairs(results, repository, (a, b), pattern, choices, problems):
        sides = []
        for one in (pair.a, pair.b):
            texts = one.texts()
            text = None if texts is None else texts.hlo if stage == "hlo" else texts.stablehlo
            label = f"{pair.label} at {one.commit[:8]}"
            sides.append(Side(label, one.fingerprint, one.facts, text))
        yield sides[0], sides[1]


def compare(a: Side, b: Side, stage: str) -> Comparison:
    """Compare two programs: their fingerprints, their facts, and their texts of one stage."""
    same = bool(a.fingerprint) and a.fingerprint == b.fingerprint
    changes = facts_difference(a.facts, b.facts)
    known = a.text is not None and b.text is not None
    # Equal fingerprints are equal optimised HLO; what came before it may differ all the same.
    text = "" if same and stage == "hlo" else text_difference(a.text or "", b.text or "")
    text = text if known else ""
    differ = bool(changes or text or not (same or known))
    if same:
        verdict = f"the same program ({a.fingerprint})"
        if text:
            verdict += f", from another {stage}"
    elif not known:
        verdict = (
            f"another program: {a.fingerprint} → {b.fingerprint}. Its text was not kept at both "
            "commits; `harness run --fresh --keep-programs` keeps it."
        )
    elif differ:
        verdict = f"another program: {a.fingerprint} → {b.fingerprint}"
        if not text:
            verdict += f", of the same {stage}"
    else:
        verdict = f"the same {stage} but for the names in it: {a.fingerprint} → {b.fingerprint}"
    return Comparison(a, b, verdict, summary(changes), text, differ)
