"""The rule that decides: it starts at `unsure`, and moves only on evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

SAME, FASTER, SLOWER, UNSURE, INCOMPARABLE = "same", "faster", "slower", "unsure", "incomparable"

VERDICTS = (SLOWER, FASTER, UNSURE, INCOMPARABLE, SAME)
"""In the order in which they are shown."""

ALPHA = 0.05
"""The share of rows called faster or slower that may be so by chance."""

LEAST_PROCESSES = 3
"""Per side: of fewer, nothing is known about their scatter."""

RUNS_THE_PROGRAM = frozenset({"execute", "dispatch", "load"})
"""Stages in which a finished program runs or is read: with an equal program, a changed time is the
environment's doing. Not so in `trace`, `lower` and `compile`, whose work may change while the
program that comes out is the same; `first_call` and `start` contain them."""


class Evidence(NamedTuple):
    """What is known of a pair of rows that can be compared."""

    stage: str
    n_a: int
    n_b: int
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
    program: str
    """`equal`, `differs`, or "" where a fingerprint is not known."""
    facts: Callable[[], str]
    """What differs between the programs."""
    environment: Callable[[], str]
    """What differs between the environments."""
    across: bool = False
    """The rows are of unlike machines, and a user asked for it."""


class Decision(NamedTuple):
    """The verdict, and why."""

    verdict: str
    reason: str
    cause: str = ""
    """`program`, `environment`, `machine` (across machines), or "" where none is known to be."""


def decide(found: Evidence) -> Decision:
    """Return the verdict on a pair of rows."""
    decision = _by_numbers(found)
    if found.across:
        # The machine is what was asked about, so an equal program does not make a row unsure.
        same = {"equal": "the program is the same", "differs": f"program: {found.facts()}"}
        parts = ["across machines", decision.reason, same.get(found.program, "")]
        return Decision(decision.verdict, "; ".join(filter(None, parts)), "machine")
    if found.program == "equal" and found.stage in RUNS_THE_PROGRAM:
        if decision.verdict in (FASTER, SLOWER):
            what = found.environment() or "nothing recorded differs: the machine"
            text = f"environment: the program is the same, and {change_text(found.ratio)}; {what}"
            return Decision(UNSURE, text, "environment")
    elif found.program == "differs" and decision.verdict != SAME:
        what = found.facts() or "no total differs"
        return Decision(decision.verdict, f"{decision.reason}; program: {what}", "program")
    elif found.program == "differs":
        return decision._replace(cause="program")
    return decision


def _by_numbers(found: Evidence) -> Decision:
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
    effect = found.effect
    differs = found.p_adjusted <= ALPHA
    interval = f"{found.low:.3g} to {found.high:.3g}"
    if found.counts and differs:
        return Decision(
            SLOWER if found.ratio > 1 else FASTER,
            f"{change_text(found.ratio)} ({percent(effect)} counts), p = {found.p_adjusted:.2g} "
            f"among {found.rows} rows",
        )
    if found.low >= 1 / (1 + effect) and found.high <= 1 + effect:
        return Decision(SAME, f"the 90 % interval {interval} lies within {percent(effect)}")
    if differs:
        return Decision(
            UNSURE,
            f"{change_text(found.ratio)}, less than what counts ({percent(effect)}), but the 90 % "
            f"interval {interval} reaches beyond",
        )
    if found.counts:
        return Decision(
            UNSURE,
            f"{change_text(found.ratio)}, but this may be chance: p = {found.p_adjusted:.2g} among "
            f"{found.rows} rows; more processes would tell (--effort thorough)",
        )
    return Decision(
        UNSURE,
        f"the 90 % interval {interval} reaches beyond what counts ({percent(effect)}): more "
        "processes would narrow it (--effort thorough)",
    )


def change_text(ratio: float) -> str:
    """Return a ratio in words: `12 % slower`, `1.2 % faster`, `3.1 × slower`."""
    more = max(ratio, 1 / ratio)
    word = "slower" if ratio >= 1 else "faster"
    if more >= 2:
        return f"{more:.3g} × {word}"
    return f"{percent(more - 1)} {word}"


def percent(share: float) -> str:
    """Return a share as text: 0.05 is `5 %`, 0.0123 is `1.2 %`."""
    hundredths = share * 100
    decimals = 0 if hundredths >= 9.95 or abs(hundredths - round(hundredths)) < 0.05 else 1
    return f"{hundredths:.{decimals}f} %"
