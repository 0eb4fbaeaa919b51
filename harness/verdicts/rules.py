"""The rules: why rows cannot be compared, and which verdict the numbers of the others allow.

A verdict starts at `unsure`, and moves only on evidence.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from harness.errors import UsageError
from harness.frame.differences import (
    ARROW,
    REMEDY,
    environment_difference,
    facts_difference,
    row_difference,
)
from harness.frame.ratios import LEAST_PROCESSES
from harness.stages import sampling
from harness.stages.registry import STAGES
from harness.verdicts import counts
from harness.verdicts.pairs import Row

SAME, FASTER, SLOWER, UNSURE, INCOMPARABLE = "same", "faster", "slower", "unsure", "incomparable"

VERDICTS = (SLOWER, FASTER, UNSURE, INCOMPARABLE, SAME)
"""In the order in which they are shown."""

ALPHA = 0.05
"""The share of rows called faster or slower that may be so by chance."""

ACROSS = "`--across machine` compares them all the same."
"""How to ask for what is not compared unasked."""


def incomparable(a: Row | None, b: Row | None, machines: bool = True) -> str:
    """Return why two rows cannot be compared, or "" if they can.

    `machines` says whether those of two machines, or of unlike ones of one name, cannot.
    """
    if a is None or b is None:
        return "only in A" if b is None else "only in B"
    if a["version"] != b["version"]:
        return f"the workload or the method changed: {a['version']}{ARROW}{b['version']}"
    arms = {"A": a, "B": b}
    bad = {arm: _status_text(row) for arm, row in arms.items() if row["status"] != "ok"}
    if bad:
        return f"{' and '.join(bad)} {' / '.join(dict.fromkeys(bad.values()))}"
    protocols = [_protocol(row["effort"]) for row in (a, b)]
    if all(protocols) and protocols[0] != protocols[1]:
        return (
            f"processes did different things: {protocols[0]} (effort {a['effort']}) and "
            f"{protocols[1]} (effort {b['effort']})"
        )
    for arm, row in arms.items():
        if len(row["samples"]) not in (0, row["n_processes"]):
            return f"{arm} does not say which samples are of which process"
    differs = row_difference(a, b) if machines else ""
    if differs and a["machine"] == b["machine"]:
        return f"{differs}. {REMEDY} {ACROSS}"
    return f"unlike machines: {differs}. {ACROSS}" if differs else ""


def _status_text(row: Row) -> str:
    return ": ".join(filter(None, (row["status"], row["reason"])))


@lru_cache
def _protocol(effort: str) -> str:
    try:
        return sampling.effort(effort).protocol
    except UsageError:  # of another version of the harness, or of none
        return ""


class RowEvidence(NamedTuple):
    """The numbers of a pair of rows that can be compared."""

    n_a: int
    n_b: int
    """Processes."""
    ratio: float
    low: float
    high: float
    """The 90 % interval, which must lie within the effect for `same`."""
    p_adjusted: float
    rows: int
    """How many rows were judged together."""
    effect: float
    counts: bool
    """The ratio differs from 1 by at least the effect."""


class Decision(NamedTuple):
    """The verdict, and why."""

    verdict: str
    reason: str
    cause: str = ""
    """`program`, `environment`, `machine` (across machines), or "" where none is known to be."""


def decide(evidence: RowEvidence, a: Row, b: Row, across: bool = False) -> Decision:
    """Return the verdict on a pair of rows; `across` says that unlike machines were asked for."""
    decision = _with_counts(_by_numbers(evidence), counts.proof(a, b))
    verdict, reason, _ = decision
    program = program_of(a, b)
    if across:
        # The machine is what was asked about, so an equal program does not make a row unsure.
        parts = ["across machines", reason]
        if program:
            same = program == "equal"
            parts += ["the program is the same" if same else f"program: {facts_difference(a, b)}"]
        return Decision(verdict, "; ".join(parts), "machine")
    if program == "equal" and verdict in (FASTER, SLOWER) and runs_the_program(b["stage"]):
        what = _environment_difference(a["environment"], b["environment"])
        text = (
            f"environment: the program is the same, and {change_text(evidence.ratio)}; "
            f"{what or 'nothing recorded differs: the machine'}"
        )
        return Decision(UNSURE, text, "environment")
    if program == "differs":
        if verdict != SAME:
            reason += f"; program: {facts_difference(a, b) or 'no total differs'}"
        return Decision(verdict, reason, decision.cause or "program")
    return decision


def _with_counts(decision: Decision, proof: counts.Proof | None) -> Decision:
    """Return what the clock says, unless it does not tell and counts do."""
    if proof is None:
        return decision
    if decision.verdict in (SAME, UNSURE):
        return Decision(SLOWER if proof.rose else FASTER, proof.text, proof.cause)
    if (decision.verdict == SLOWER) == proof.rose:
        return decision._replace(reason=f"{decision.reason}; {proof.text}")
    count = proof.calls
    told = f"{decision.reason}, though {count.before:,.0f}{ARROW}{count.after:,.0f} Python calls"
    return decision._replace(reason=told)


def runs_the_program(stage: str) -> bool:
    """Tell whether a finished program runs or is read in a stage, and nothing else is done."""
    return stage in STAGES and STAGES[stage].runs_program


def program_of(a: Row, b: Row) -> str:
    """Return whether two rows built the same program: `equal`, `differs`, or "" if not known."""
    if not a["fingerprint"] or not b["fingerprint"]:
        return ""
    return "equal" if a["fingerprint"] == b["fingerprint"] else "differs"


_environment_difference = lru_cache(maxsize=1024)(environment_difference)


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
    change, counted = change_text(found.ratio), percent(found.effect)
    differs = found.p_adjusted <= ALPHA
    interval = f"the 90 % interval {found.low:.3g} to {found.high:.3g}"
    chance = f"p = {found.p_adjusted:.2g} among {found.rows} rows"
    if found.counts and differs:
        verdict = SLOWER if found.ratio > 1 else FASTER
        return Decision(verdict, f"{change} ({counted} counts), {chance}")
    if found.low >= 1 / (1 + found.effect) and found.high <= 1 + found.effect:
        return Decision(SAME, f"{interval} lies within {counted}")
    if differs:
        text = f"{change}, less than what counts ({counted}), but {interval} reaches beyond"
    elif found.counts:
        text = (
            f"{change}, but this may be chance: {chance}; more processes would tell "
            "(--effort thorough)"
        )
    else:
        text = (
            f"{interval} reaches beyond what counts ({counted}): more processes would narrow it "
            "(--effort thorough)"
        )
    return Decision(UNSURE, text)


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
