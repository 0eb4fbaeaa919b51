"""The rules: why rows cannot be compared, and which verdict the numbers of the others allow.

A verdict starts at `unsure`, and moves only on evidence.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import ExitCode
from harness.frame.differences import (
    ARROW,
    MOST_VERSION,
    REMEDY,
    environment_difference,
    facts_difference,
    row_difference,
)
from harness.frame.ratios import LEAST_PROCESSES
from harness.records.units import counted, seconds_text, value_text
from harness.stages.registry import effect, stage_of
from harness.verdicts import counts, loads
from harness.verdicts.drift import are_times
from harness.verdicts.loads import Load
from harness.verdicts.proof import Equal, other_inputs, share_runtime

if TYPE_CHECKING:
    from harness.verdicts.families import Whole
    from harness.verdicts.pairs import Row

Met = tuple[Load, Load] | None
"""The loads of both sides, where they matter."""

SAME, FASTER, SLOWER, UNSURE, INCOMPARABLE = "same", "faster", "slower", "unsure", "incomparable"
BROKEN = "broken"
MORE, LESS = "more", "less"
"""Of a value that is not a time."""

BY_VALUE = (MORE, LESS, SAME)
"""What two values without samples can come to."""

VERDICTS = (BROKEN, SLOWER, MORE, FASTER, LESS, UNSURE, INCOMPARABLE, SAME)
"""In the order in which they are shown."""

ALPHA = 0.05
"""The share of rows called faster or slower that may be so by chance, in each stage."""

SAME_WITHIN = 2.0
"""Times the effect that counts: within it the 95 % interval of `same` lies."""

WAITING_S = 0.005
"""The least by which waiting rises that counts; and by the effect of the stage, as a share."""

MACHINE = "machine"
"""The cause of what the clock said although nothing that determines it differs."""

LOAD = "load"
"""The cause of `unsure` where the clock of each side met another machine."""

CALLS_EFFECT = 1.0
"""What 90 % of calls do not exceed must be twice as long, or half, to be another mode."""

SECONDS = "seconds"
"""The unit of what is judged by a clock."""

ONE_MACHINE = "Measure both on one machine."
"""What to do where two machines were asked about."""

WORKS_AGAIN = "works again"
"""Begins the reason of a row that failed in A, and is healthy in B."""

_FAILING = ("failed", "refused")


def exit_code(verdicts: Collection[str]) -> ExitCode:
    """Return what `harness compare` ends with, of the verdicts that are shown."""
    if BROKEN in verdicts:
        return ExitCode.BROKEN
    if not set(verdicts) - {INCOMPARABLE}:
        return ExitCode.NOTHING
    return ExitCode.WORSE if {SLOWER, MORE} & set(verdicts) else ExitCode.FINE


def without_clock(a: Row | None, b: Row | None, machines: bool = True) -> Decision | None:
    """Return the verdict on two rows that are not compared by their times, or None if they are.

    `machines` says whether those of two machines, or of unlike ones of one name, cannot be.
    """
    if a is None or b is None:
        return Decision(INCOMPARABLE, "only in A" if b is None else "only in B")
    arms = {"A": a, "B": b}
    bad = {arm: _status_text(row) for arm, row in arms.items() if row["status"] != "ok"}
    if list(bad) == ["B"] and b["status"] in _FAILING:
        return Decision(BROKEN, f"B {bad['B']}")
    if list(bad) == ["A"] and a["status"] in _FAILING:
        return Decision(INCOMPARABLE, f"{WORKS_AGAIN}: A {bad['A']}")
    if bad:
        text = f"{' and '.join(bad)} {' / '.join(dict.fromkeys(bad.values()))}"
        return Decision(INCOMPARABLE, text)
    if reason := _unlike(a, b, machines):
        return Decision(INCOMPARABLE, reason)
    return None if b["unit"] == SECONDS else _by_value(a, b)


def _by_value(a: Row, b: Row) -> Decision:
    """Return the verdict on two values in one unit that is not a time: one number on each side."""
    least, (one, other) = effect(b["stage"]), (row["value"] for row in (a, b))
    if one > 0 and other > 0:
        change = abs(other / one - 1)
        if max(one, other) / min(one, other) < 1 + least:
            exact = "equal" if one == other else f"{percent(change)} apart"
            return Decision(SAME, f"{exact}: less than {percent(least)}")
        ratio = f", {other / one:.3g} ×"
    elif one == other:
        return Decision(SAME, "equal")
    else:
        ratio = ""
    return Decision(
        MORE if other > one else LESS,
        f"{value_text(one, a['unit'])}{ARROW}{value_text(other, b['unit'])}{ratio} "
        f"({percent(least)} counts)",
    )


def _unlike(a: Row, b: Row, machines: bool) -> str:
    if a["version"] != b["version"]:
        versions = (row["version"][:MOST_VERSION] for row in (a, b))  # asv's own have 64 digits
        return f"the workload or the method changed: {ARROW.join(versions)}"
    protocols = [row.get("protocol") or "" for row in (a, b)]  # NaN in exports of before
    if all(p == p and p for p in protocols) and protocols[0] != protocols[1]:
        return (
            f"processes did different things: {protocols[0]} (effort {a['effort']}) and "
            f"{protocols[1]} (effort {b['effort']})"
        )
    methods = {arm: row.get("method") or 1 for arm, row in (("A", a), ("B", b))}
    known = {arm: number for arm, number in methods.items() if number == number}
    if len(set(known.values())) > 1:
        older = min(known, key=lambda arm: known[arm])
        return (
            f"{a['stage']} is taken in another way since {older}, by method {known['A']:g} and "
            f"{known['B']:g}: check the commit of {older} out and measure it with `harness run`"
        )
    if a["unit"] != b["unit"]:
        return f"the unit changed: {a['unit'] or 'none'}{ARROW}{b['unit'] or 'none'}"
    if b["unit"] != SECONDS:
        return ""
    arms = (("A", a), ("B", b))
    for arm, row in arms:
        if len(row["samples"]) not in (0, row["n_processes"]):
            return f"{arm} does not say which samples are of which process"
    differs = row_difference(a, b) if machines else ""
    if differs and a["machine"] == b["machine"]:
        return f"{differs}. {REMEDY}"
    if differs:
        return f"unlike machines: {differs}. {ONE_MACHINE}"
    for arm, row in arms:
        wrong = [value for value in row["samples"] if not are_times([value])]
        if wrong:
            return f"{arm} has a sample that is no time: {wrong[0]} s"
        if not len(row["samples"]):
            return f"{arm} has no samples"
    return ""


def _status_text(row: Row) -> str:
    return ": ".join(filter(None, (row["status"], row["reason"])))


class RowEvidence(NamedTuple):
    """The numbers of a pair of rows that can be compared."""

    n_a: int
    n_b: int
    """Processes."""
    ratio: float
    low: float
    high: float
    """The 95 % interval, which is shown."""
    p: float
    p_adjusted: float
    """NaN where the row cannot be called: see :func:`can_be_called`."""
    effect: float
    counts: bool
    """The ratio differs from 1 by at least the effect."""
    rows: int
    """How many rows of the stage were judged together."""


class Decision(NamedTuple):
    """The verdict, and why."""

    verdict: str
    reason: str
    cause: str = ""
    """`program`, `inputs`, `environment`, `calls` (some calls only), `processes` (some processes
    only), `waiting` (wall time beyond CPU time), :data:`MACHINE`, :data:`LOAD`, or "" where
    none is known to be."""


class Waiting(NamedTuple):
    """What wall time beyond CPU time did from one row to the other."""

    rise_s: float
    """Below 0 for a fall; 0 where its own scatter hides it."""
    p: float
    """Corrected for the number of rows."""
    counts: bool
    """It rose or fell by enough."""
    expected_s: float
    """What the load on this machine makes a process wait; 0 where that is like, and low."""


def can_be_called(a: Row, b: Row) -> bool:
    """Tell whether a changed time of the row alone can be called slower or faster.

    Where an equal program only runs on inputs that are not known to differ, and nothing that runs
    it does, the machine did it. When the whole stage moves, all of its rows can be called.
    """
    return not (_only_runs(a, b) and share_runtime(a, b))


def _only_runs(a: Row, b: Row) -> bool:
    """Tell whether an equal program only runs, on inputs that are not known to differ."""
    ran = program_of(a, b) == "equal" and stage_of(b["stage"]).runs_program
    return ran and not other_inputs(a, b)


def decide(
    evidence: RowEvidence, a: Row, b: Row, whole: Decision, equal: Equal, met: Met = None
) -> Decision:
    """Return the verdict on a pair of rows.

    `whole` is that on all rows of the stage together, `equal` what proves that nothing differs,
    and `met` the loads of both sides where they are unlike.
    """
    if equal is not Equal.NOTHING:
        return _proven(evidence, equal)
    by_clock = _by_numbers(evidence) if met is None else _by_no_clock(*met)
    decision = _with_counts(by_clock, counts.proof(a, b))
    if decision.cause == LOAD:
        return decision
    verdict, reason, _ = decision
    program = program_of(a, b)
    called = verdict in (FASTER, SLOWER)
    ran = _only_runs(a, b)
    excused = ran and math.isnan(evidence.p_adjusted) and not math.isnan(evidence.p)
    if ran and (called or (excused and evidence.counts and evidence.p <= ALPHA)):
        what = environment_difference(a["environment"], b["environment"])
        reason = reason if called else change_text(evidence.ratio)
        reason += f"; environment: {what or NOTHING_DIFFERS}; the program is the same"
        decision = Decision(verdict if called else UNSURE, reason, "environment")
    elif called and program == "equal" and stage_of(b["stage"]).runs_program:
        reason += "; the program is the same, its inputs differ"
        decision = Decision(verdict, reason, "inputs")
    elif program == "differs":
        if verdict != SAME:
            reason += f"; program: {facts_difference(a, b) or 'no total differs'}"
        decision = Decision(verdict, reason, decision.cause or "program")
    if whole.verdict in (SLOWER, FASTER):
        what = f"the whole stage is {whole.verdict}"
        cause = decision.cause or (whole.cause if called else "")
        if whole.cause == "processes":
            what = f"some processes of the stage are {whole.verdict}"
            cause = decision.cause
        decision = Decision(decision.verdict, f"{decision.reason}; {what}", cause)
    return decision


def _proven(evidence: RowEvidence, equal: Equal) -> Decision:
    """Return `same`, and by how much the machine differed where the clock did."""
    if not evidence.counts:
        return Decision(SAME, equal.value)
    return Decision(SAME, f"{equal.value}; {machine_text(evidence.ratio)}", MACHINE)


def machine_text(ratio: float, at_most: str = "") -> str:
    """Return what the clock said although nothing differs, in words."""
    return f"the machine differed by {at_most}{percent(max(ratio, 1 / ratio) - 1)}"


def _by_no_clock(a: Load, b: Load) -> Decision:
    return Decision(UNSURE, f"measured under unlike loads: {loads.text(a, b)}; {loads.TURNS}", LOAD)


def decide_waiting(
    decision: Decision, waiting: Waiting, stage: str, met: Met, rows: int
) -> Decision:
    """Return the verdict on a row of which wall time beyond CPU time rose or fell.

    `decision` is what its CPU time says, `met` the loads of both sides; `rows` were judged
    together.
    """
    called = waiting.counts and waiting.p <= ALPHA
    if not called or decision.verdict in (SLOWER, FASTER):
        return decision
    more, rose = abs(waiting.rise_s), waiting.rise_s > 0
    change = f"{seconds_text(more)} {'more' if rose else 'less'}"
    what = f"waits {change} in {stage} (wall time beyond CPU time)"
    if more <= waiting.expected_s:
        why = f"{loads.text(*met)}; {loads.TURNS}" if met else loads.TURNS
        return Decision(UNSURE, f"{what}, which the load of the machine can do: {why}", LOAD)
    text = f"{what}, p = {waiting.p:.2g} among {counted(rows, 'row')}; CPU time: {decision.reason}"
    return Decision(SLOWER if rose else FASTER, text, "waiting")


NOTHING_DIFFERS = "nothing that is recorded differs: the machine, or a build of the same version"


def decide_whole(
    moved: Whole,
    p_adjusted: float,
    families: int,
    rows: Sequence[tuple[Row, Row]],
    met: Met = None,
) -> Decision:
    """Return the verdict on all rows of a stage together; "" where there is none.

    `p_adjusted` is corrected for the number of `families`, which are the stages that were judged.
    `met` are the loads of both sides where they are unlike.
    """
    if math.isnan(moved.p):
        return Decision("", "")
    enough = max(moved.ratio, 1 / moved.ratio) >= 1 + moved.effect
    said = f"{change_text(moved.ratio)} in most of {moved.cases} cases"
    chance = f"p = {p_adjusted:.2g} among {counted(families, 'stage')}"
    if enough and met is not None:
        return _by_no_clock(*met)
    if not (enough and p_adjusted <= ALPHA):
        return Decision(SAME if not enough else UNSURE, f"{said}, {chance}")
    a, b = rows[-1]
    what = environment_difference(a["environment"], b["environment"]) or NOTHING_DIFFERS
    programs = [program_of(*pair) for pair in rows]
    equal, differ = programs.count("equal"), programs.count("differs")
    parts = [f"{said} ({percent(moved.effect)} counts), {chance}", f"environment: {what}"]
    if equal or differ:
        parts.append(f"programs: {equal} equal, {differ} differ")
    return Decision(SLOWER if moved.ratio > 1 else FASTER, "; ".join(parts), "environment")


def decide_processes(count: int, of: int, p_adjusted: float, side: int) -> Decision | None:
    """Return the verdict on processes of one arm that are slower than all others; None if none.

    `count` of the `of` processes of a side, 0 for A, are. `p_adjusted` is corrected for the number
    of stages.
    """
    if p_adjusted > ALPHA:
        return None
    text = f"{count} of {of} processes of {'AB'[side]} are slower in most cases"
    return Decision(
        SLOWER if side else FASTER, f"{text}, p = {p_adjusted:.2g}; the others are not", "processes"
    )


def decide_calls(decision: Decision, ratio: float, p_adjusted: float, rows: int) -> Decision:
    """Return the verdict on a row of which some calls became slower or faster.

    `decision` is what its least calls say, `ratio` that of what 90 % of calls do not exceed; `rows`
    were judged together.
    """
    if decision.verdict in (SLOWER, FASTER) or not p_adjusted <= ALPHA:
        return decision
    text = (
        f"some calls: the slowest tenth is {change_text(ratio)}, p = {p_adjusted:.2g} among "
        f"{counted(rows, 'row')}; the least call: {decision.reason}"
    )
    return Decision(SLOWER if ratio > 1 else FASTER, text, "calls")


def _with_counts(decision: Decision, proof: counts.Proof | None) -> Decision:
    """Return what the clock says, unless it does not tell and counts do."""
    if proof is None:
        return decision
    if decision.verdict in (SAME, UNSURE):
        return Decision(SLOWER if proof.rose else FASTER, proof.text, proof.cause)
    if (decision.verdict == SLOWER) == proof.rose:
        return decision._replace(reason=f"{decision.reason}; {proof.text}")
    return decision._replace(reason=f"{decision.reason}, though {proof.change}")


def program_of(a: Row, b: Row) -> str:
    """Return whether two rows built the same program: `equal`, `differs`, or "" if not known."""
    if not a["fingerprint"] or not b["fingerprint"]:
        return ""
    return "equal" if a["fingerprint"] == b["fingerprint"] else "differs"


def _by_numbers(found: RowEvidence) -> Decision:
    lacking = {
        arm: LEAST_PROCESSES - n
        for arm, n in (("A", found.n_a), ("B", found.n_b))
        if n < LEAST_PROCESSES
    }
    if lacking:
        more = " and ".join(f"{count} more of {arm}" for arm, count in lacking.items())
        return Decision(
            UNSURE,
            f"too few processes ({found.n_a} and {found.n_b}): at least {more}; --effort default "
            "takes 8",
        )
    change, least = change_text(found.ratio), percent(found.effect)
    excluded = SAME_WITHIN * found.effect
    interval = f"the 95 % interval {found.low:.3g} to {found.high:.3g}"
    chance = f"p = {found.p_adjusted:.2g} among {counted(found.rows, 'row')}"
    if found.counts and found.p_adjusted <= ALPHA:
        verdict = SLOWER if found.ratio > 1 else FASTER
        return Decision(verdict, f"{change} ({least} counts), {chance}")
    beyond = found.low < 1 / (1 + excluded) or found.high > 1 + excluded
    if not found.counts and not beyond:
        return Decision(
            SAME, f"less than {least}, and surely less than {percent(excluded)}: {interval}"
        )
    more = "more processes would tell (--effort thorough)"
    if found.counts and not math.isnan(found.p_adjusted):
        return Decision(UNSURE, f"{change}, but this may be chance: {chance}; {more}")
    return Decision(UNSURE, f"{interval} reaches beyond {percent(excluded)}; {more}")


def change_text(ratio: float) -> str:
    """Return a ratio in words: `12 % slower`, `1.2 % faster`, `3.1 × slower`."""
    more = max(ratio, 1 / ratio)
    word = "slower" if ratio >= 1 else "faster"
    return f"{more:.3g} × {word}" if more >= 2 else f"{percent(more - 1)} {word}"


def percent(share: float) -> str:
    """Return a share as text: 0.05 is `5 %`, 0.0123 is `1.2 %`."""
    hundredths = share * 100
    decimals = 0 if hundredths >= 9.95 or abs(hundredths - round(hundredths)) < 0.05 else 1
    return f"{hundredths:.{decimals}f} %"
