"""The rules: why rows cannot be compared, and which verdict the numbers of the others allow.

A verdict starts at `unsure`, and moves only on evidence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from harness.frame.differences import row_difference
from harness.frame.ratios import LEAST_PROCESSES
from harness.stages.registry import stage_of
from harness.verdicts import counts, verdict
from harness.verdicts.clocks import are_times
from harness.verdicts.proof import Equal, other_inputs, share_runtime
from harness.verdicts.values import by_value
from harness.verdicts.verdict import (
    BROKEN,
    FASTER,
    INCOMPARABLE,
    MOVED,
    SAME,
    SECONDS,
    SLOWER,
    UNSURE,
    Load,
    Verdict,
)

if TYPE_CHECKING:
    from harness.frame.pairs import Row

Met = tuple[Load, Load] | None
"""The loads of both sides, where they matter."""

ALPHA = 0.05
"""The share of rows called faster or slower that may be so by chance, in each stage."""

SAME_WITHIN = 2.0
"""Times the effect that counts: within it the interval of `same` lies."""

WAITING_S = 0.005
"""The least by which waiting rises that counts; and by the effect of the stage, as a share."""

CALLS_EFFECT = 1.0
"""What 90 % of calls do not exceed must be twice as long, or half, to be another mode."""

_FAILING = ("failed", "refused")


# --- what no clock decides ------------------------------------------------------------------------


def without_clock(a: Row | None, b: Row | None, machines: bool = True) -> Verdict | None:
    """Return the verdict on two rows that are not compared by their times, or None if they are.

    `machines` says whether those of two machines, or of unlike ones of one name, cannot be.
    """
    if a is None or b is None:
        return Verdict(INCOMPARABLE, problem="only in", detail=("A" if b is None else "B",))
    bad = {arm: row for arm, row in (("A", a), ("B", b)) if row["status"] != "ok"}
    if list(bad) == ["B"] and b["status"] in _FAILING:
        return Verdict(BROKEN, problem="fails", detail=_status(b))
    if list(bad) == ["A"] and a["status"] in _FAILING:
        return Verdict(INCOMPARABLE, problem="works again", detail=_status(a))
    if bad:
        texts = (" ".join(bad), *(text for row in bad.values() for text in _status(row)))
        return Verdict(INCOMPARABLE, problem="status", detail=texts)
    if unlike := _unlike(a, b, machines):
        return Verdict(INCOMPARABLE, problem=unlike[0], detail=unlike[1:])
    return None if b["unit"] == SECONDS else by_value(a, b)


def _unlike(a: Row, b: Row, machines: bool) -> tuple[str, ...]:
    """Return a code and what belongs to it, where two rows cannot be compared at all."""
    arms = (("A", a), ("B", b))
    protocols = [row.get("protocol") or "" for row in (a, b)]  # NaN in exports of before
    if a["version"] != b["version"]:
        return "version", a["version"], b["version"]
    if all(p == p and p for p in protocols) and protocols[0] != protocols[1]:
        return "protocol", protocols[0], a["effort"], protocols[1], b["effort"]
    methods = {arm: row.get("method") or 1 for arm, row in arms}
    numbers = {arm: number for arm, number in methods.items() if number == number}
    if len(set(numbers.values())) > 1:
        older = min(numbers, key=lambda arm: numbers[arm])
        return "method", a["stage"], older, *(f"{numbers[arm]:g}" for arm in "AB")
    if a["unit"] != b["unit"]:
        return "unit", a["unit"], b["unit"]
    if b["unit"] != SECONDS:
        return ()
    for arm, row in arms:
        if len(row["samples"]) not in (0, row["n_processes"]):
            return "samples of which process", arm
    differs = row_difference(a, b) if machines else ""
    if differs:
        return ("one name" if a["machine"] == b["machine"] else "machines"), differs
    for arm, row in arms:
        wrong = [value for value in row["samples"] if not are_times([value])]
        if wrong:
            return "no time", arm, str(wrong[0])
        if not len(row["samples"]):
            return "no samples", arm
    return ()


def _status(row: Row) -> tuple[str, str]:
    return row["status"], row["reason"]


# --- one rule for what a clock says ---------------------------------------------------------------


def kind_of(ratio: float, low: float, high: float, effect: float) -> str:
    """Return what a ratio and its interval allow; the only rule there is for times."""
    if low > 1 and ratio >= 1 + effect:
        return SLOWER
    if high < 1 and ratio <= 1 / (1 + effect):
        return FASTER
    excluded = 1 + SAME_WITHIN * effect
    counts = max(ratio, 1 / ratio) >= 1 + effect
    return SAME if not counts and low >= 1 / excluded and high <= excluded else UNSURE


def by_clock(numbers: Verdict, a: Row, b: Row, equal: Equal, met: Met) -> Verdict:
    """Return the verdict on a pair of rows by the clock of its stage, by proof and by counts.

    `numbers` has the numbers; `equal` is what proves that nothing differs, and `met` the loads of
    both sides where they are unlike.
    """
    if equal is not Equal.NOTHING:
        return _proven(numbers, equal)
    if met is not None:
        decided = replace(numbers, kind=UNSURE, cause=verdict.LOAD, needs=verdict.NEEDS_TURNS)
    elif min(numbers.n_a, numbers.n_b) < LEAST_PROCESSES:
        decided = replace(numbers, kind=UNSURE, needs=verdict.NEEDS_PROCESSES)
    else:
        kind = kind_of(numbers.ratio, numbers.low, numbers.high, numbers.effect)
        needs = verdict.NEEDS_PROCESSES if kind == UNSURE else ""
        decided = replace(numbers, kind=kind, needs=needs)
    return _with_counts(decided, counts.proof(a, b))


def with_cause(decided: Verdict, a: Row, b: Row) -> Verdict:
    """Return a verdict with what is known to have changed, where it is another program or so."""
    if decided.cause or decided.evidence == verdict.PROOF:
        return decided
    program = program_of(a, b)
    if program == "differs":
        return replace(decided, cause=verdict.PROGRAM)
    if decided.kind in MOVED and program == "equal" and stage_of(b["stage"]).runs_program:
        cause = verdict.INPUTS if other_inputs(a, b) else verdict.ENVIRONMENT
        return replace(decided, cause=cause)
    return decided


def _proven(numbers: Verdict, equal: Equal) -> Verdict:
    """Return `same`, and by how much the machine differed where the clock did."""
    moved = max(numbers.ratio, 1 / numbers.ratio) >= 1 + numbers.effect
    return replace(
        numbers,
        kind=SAME,
        evidence=verdict.PROOF,
        problem=equal.value,
        cause=verdict.MACHINE if moved else "",
        machine=numbers.ratio,
        ratio=1.0,
        low=1.0,
        high=1.0,
        p=1.0,
        p_adjusted=1.0,
    )


def _with_counts(decided: Verdict, proof: counts.Proof | None) -> Verdict:
    """Return what the clock says, unless it does not tell and counts do.

    A change of what counts is one of the stage's time; a smaller one is shown, and is none.
    """
    if proof is None:
        return decided
    calls = proof.before, proof.after
    if decided.kind in MOVED:
        return replace(decided, calls=calls)
    return replace(
        decided,
        kind=proof.kind,
        evidence=verdict.COUNTS,
        cause=verdict.ENVIRONMENT if proof.other_jax else "",
        needs="",
        unit="calls",
        a=proof.before,
        b=proof.after,
        ratio=proof.ratio,
        low=proof.ratio,
        high=proof.ratio,
        calls=calls,
    )


# --- what else a clock says -----------------------------------------------------------------------


class Waiting(NamedTuple):
    """What wall time beyond CPU time did from one row to the other."""

    rise_s: float
    """Below 0 for a fall; 0 where its own scatter hides it."""
    counts: bool
    """It rose or fell by enough, and by more than chance."""
    expected_s: float
    """What the load on this machine makes a process wait; 0 where that is like, and low."""
    seen: bool
    """It rose by enough in the few processes in turns that there are, beyond what the load does."""


def with_waiting(decided: Verdict, waiting: Waiting, wall: Verdict) -> Verdict:
    """Return the verdict on a row of which wall time beyond CPU time rose or fell.

    `decided` is what else is known of it, and `wall` has the numbers of its wall time. What is
    shown must say it as well: the interval of the wall time.
    """
    rose = waiting.rise_s > 0
    if waiting.seen and decided.kind == SAME:
        about = replace(decided, kind=UNSURE, evidence=verdict.WAITING, problem="")
        return replace(about, needs=verdict.NEEDS_PROCESSES, waiting_s=waiting.rise_s)
    if not waiting.counts or decided.kind in MOVED or not (wall.low > 1 if rose else wall.high < 1):
        return decided
    about = replace(wall, evidence=verdict.WAITING, waiting_s=waiting.rise_s)
    if abs(waiting.rise_s) <= waiting.expected_s:
        return replace(about, kind=UNSURE, cause=verdict.LOAD, needs=verdict.NEEDS_TURNS)
    return replace(about, kind=SLOWER if rose else FASTER, cause=decided.cause)


def with_calls(decided: Verdict, calls: Verdict) -> Verdict:
    """Return the verdict on a row of which some calls became slower or faster.

    `decided` is what its least calls say, `calls` has the numbers of what 90 % do not exceed.
    """
    if decided.kind in MOVED or calls.low != calls.low:
        return decided
    kind = kind_of(calls.ratio, calls.low, calls.high, CALLS_EFFECT)
    return replace(calls, kind=kind) if kind in MOVED else decided


# --- all rows of a stage -------------------------------------------------------------------------


def whole_kind(numbers: Verdict, met: Met) -> Verdict:
    """Return the verdict on all rows of a stage together.

    `numbers` has the numbers, p corrected for the stages; `met` are the loads of both sides where
    they are unlike.
    """
    enough = max(numbers.ratio, 1 / numbers.ratio) >= 1 + numbers.effect
    if enough and met is not None:
        return replace(
            numbers, kind=UNSURE, cause=verdict.LOAD, needs=verdict.NEEDS_TURNS, loads=met
        )
    if not enough:
        return replace(numbers, kind=SAME)
    if not numbers.p_adjusted <= ALPHA:
        return replace(numbers, kind=UNSURE, needs=verdict.NEEDS_PROCESSES)
    kind = SLOWER if numbers.ratio > 1 else FASTER
    return replace(numbers, kind=kind, cause=verdict.ENVIRONMENT)


def nothing_differs(a: Row, b: Row) -> bool:
    """Tell whether nothing that determines the times of two rows is known to differ.

    The code that ran must be recorded: packages may differ at one commit.
    """
    return (
        bool(a.get("code"))
        and a.get("code") == b.get("code")
        and program_of(a, b) != "differs"
        and share_runtime(a, b)
        and not other_inputs(a, b)
        and counts.proof(a, b) is None
    )


def program_of(a: Row, b: Row) -> str:
    """Return whether two rows built the same program: `equal`, `differs`, or "" if not known."""
    if not a["fingerprint"] or not b["fingerprint"]:
        return ""
    return "equal" if a["fingerprint"] == b["fingerprint"] else "differs"
