"""From the pairs of two arms to verdicts: one on each pair, and one on each stage as a whole."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from harness.frame.pairs import Arm, Pairs, pair, took_turns
from harness.verdicts import families as whole_stages
from harness.verdicts import memory, rules, statistics, verdict
from harness.verdicts.clocks import WALL
from harness.verdicts.error_rates import ErrorRates, Scatter, scatter_of, smallest_effect
from harness.verdicts.families import Family, more_slow_processes
from harness.verdicts.loads import is_overloaded, of_row
from harness.verdicts.memory import with_sizes
from harness.verdicts.proof import Equal, equal
from harness.verdicts.statistics import Floats
from harness.verdicts.verdict import MOVED, UNSURE, Verdict

_FAMILY = ("machine", "target", "scenario", "stage")
"""What the rows of a family share."""

NO_STAGE = Verdict("")
"""On a stage of which nothing as a whole was judged."""


class Judged(NamedTuple):
    """What is decided on a pair of rows."""

    row: Verdict
    stage: Verdict
    """On all rows of its stage together."""


@dataclass(frozen=True)
class Terms:
    """How pairs are looked at."""

    in_turns: bool = False
    """The processes of both sides took turns in all rows; else each row says."""
    share: float = 1.0
    """The part of the error that this look at rows in turns may make, of several."""
    stored_share: float = 1.0
    """The same of all others."""


def judged_arms(
    a: pd.DataFrame,
    b: pd.DataFrame,
    rates: ErrorRates | Sequence[ErrorRates] | None = None,
    in_turns: bool = False,
    on: Collection[str] = (),
) -> tuple[Pairs, list[Judged]]:
    """Return the pairs of two arms and the verdict on each; arguments as `compare_arms`."""
    scatter = scatter_of([rates] if isinstance(rates, ErrorRates) else rates or ())
    pairs = with_sizes(pair(Arm("A", a), Arm("B", b), on))
    return pairs, judge(pairs, scatter, Terms(in_turns))


def judge(pairs: Pairs, scatter: Scatter, terms: Terms | None = None) -> list[Judged]:
    """Return the verdict on each pair, in their order.

    Rows of one stage, machine, target and scenario that both arms share are a family: they are
    judged as a whole, and then each by itself.

    `pairs` are all that both arms have; what is hidden later is judged as well. `scatter` is what
    this machine's own A/A says.
    """
    terms = terms or Terms()
    decided_on: list[Judged] = []
    members: dict[tuple[Any, ...], list[int]] = {}
    for number, (a, b) in enumerate(pairs.pairs):
        in_turns = terms.in_turns or took_turns((a, b))
        # Arms that took turns were measured here, on whatever device they were told to use.
        decided = memory.judged(a, b) or rules.without_clock(a, b, machines=not in_turns)
        if decided is None and a and b:
            key = (in_turns, *(row[name] for row in (a, b) for name in _FAMILY))
            members.setdefault(key, []).append(number)
        n_a, n_b = (one["n_processes"] if one else 0 for one in (a, b))
        row = replace(decided or Verdict(UNSURE), in_turns=in_turns, n_a=n_a, n_b=n_b)
        decided_on.append(Judged(row, NO_STAGE))
    families = []
    for (in_turns, *_), numbers in members.items():
        rows = [(a, b) for a, b in map(pairs.pairs.__getitem__, numbers) if a and b]
        effects = np.array([smallest_effect(scatter, *row, pairs.axes) for row in rows])
        same = [equal(a, b) for a, b in rows]
        part = terms.share if in_turns else terms.stored_share
        # Pairs that took turns on an overloaded machine differ more often than their error says.
        part /= 1 + (in_turns and any(is_overloaded(*map(of_row, row)) for row in rows))
        families.append(Family(rows, numbers, effects, bool(in_turns), same, part))
    for family, whole in zip(families, _wholes(families), strict=True):
        for number, row in zip(family.numbers, _rows(family, whole), strict=True):
            decided_on[number] = Judged(row, whole)
    return _of_the_machine(families, decided_on)


def _wholes(families: Sequence[Family]) -> list[Verdict]:
    """Return the verdict on each family as a whole."""
    moved = [family.moved() for family in families]
    ratio, p, effect = (np.array([getattr(m, f) for m in moved]) for f in ("ratio", "p", "effect"))
    adjusted = statistics.adjust(p, statistics.counting(ratio, effect))
    tested = int(np.count_nonzero(~np.isnan(p)))
    decided = [
        rules.whole_kind(
            Verdict(
                "",
                evidence=verdict.CLOCK,
                ratio=one.ratio,
                p=one.p,
                p_adjusted=float(at),
                cases=one.cases,
                effect=one.effect,
                rows=tested,
                in_turns=family.in_turns,
            ),
            family.some_unlike,
        )
        if one.cases
        else NO_STAGE
        for one, at, family in zip(moved, adjusted, families, strict=True)
    ]
    slow = {
        number: family.slow_processes()
        for number, family in enumerate(families)
        if decided[number].kind in (verdict.SAME, UNSURE) and not family.some_unlike
    }
    for side in (0, 1):
        for number, (count, p_of_share) in more_slow_processes(slow, side).items():
            chance = min(1.0, p_of_share * len(slow))
            if chance <= rules.ALPHA:
                decided[number] = replace(
                    decided[number],
                    kind=MOVED[1 - side],
                    cause=verdict.PROCESSES,
                    needs="",
                    p_adjusted=chance,
                    detail=("AB"[side], str(count), str(len(slow[number][side]))),
                )
    return decided


def _rows(family: Family, whole: Verdict) -> list[Verdict]:
    """Return what is decided on each row of a family."""
    moved = whole.kind in MOVED and whole.cause == verdict.ENVIRONMENT
    same = [Equal.NOTHING if moved and one is Equal.PROGRAM else one for one in family.equal]
    tested = [
        one is Equal.NOTHING and met is None for one, met in zip(same, family.unlike, strict=True)
    ]
    usual = np.exp(np.nanmean(family.sides[0], axis=1))
    clock = _numbers(family, family.sides, family.effects, tested, verdict.CLOCK, family.clocks)
    calls_effect = np.full(len(same), rules.CALLS_EFFECT)
    walls = [WALL] * len(same)
    calls = _numbers(family, family.calls(), calls_effect, tested, verdict.CALLS, walls)
    wall = _numbers(family, family.wall(), family.effects, [True] * len(same), verdict.CLOCK, walls)
    rise, p = statistics.rises(*family.waiting(), family.paired, family.share)
    large = np.abs(rise) >= np.maximum(rules.WAITING_S, family.effects * usual)
    called = large & (np.nan_to_num(statistics.adjust(p, large), nan=1.0) <= rules.ALPHA)
    expected = family.expected_waiting()
    seen = np.isnan(p) & large & (rise > family.load_waiting())
    columns = rise.tolist(), called.tolist(), expected, seen.tolist()
    waiting = itertools.starmap(rules.Waiting, zip(*columns, strict=True))
    decided = []
    rows = zip(family.pairs, same, family.unlike, clock, calls, wall, waiting, strict=True)
    for (a, b), proof, met, by_clock, by_calls, by_wall, waits in rows:
        one = rules.by_clock(by_clock, a, b, proof, met)
        if proof is Equal.NOTHING and met is None:
            one = rules.with_calls(one, by_calls)
        one = rules.with_waiting(one, waits, by_wall)
        decided.append(rules.with_cause(one, a, b))
    return decided


def _numbers(
    family: Family,
    sides: tuple[Floats, Floats],
    effects: Floats,
    tested: Sequence[bool],
    evidence: str,
    clocks: Sequence[str],
) -> list[Verdict]:
    """Return the numbers of each row on one clock, not yet decided on.

    Rows that are not `tested` have no part in correcting the p of the others.
    """
    estimated = statistics.estimates(*sides, family.paired, family.share)
    counts = statistics.counting(estimated.ratio, effects)
    adjusted = statistics.adjust(np.where(tested, estimated.p, np.nan), counts)
    rows = int(np.count_nonzero(~np.isnan(adjusted)))
    low, high = estimated.interval(np.where(counts, adjusted, np.nan))
    n_a, n_b = (np.count_nonzero(~np.isnan(side), axis=1) for side in sides)
    numbers = []
    for at in range(len(family.pairs)):
        a, b = (_mean(side[at]) for side in sides)
        numbers.append(
            Verdict(
                UNSURE,
                evidence=evidence,
                clock=clocks[at],
                a=a,
                b=b,
                ratio=float(estimated.ratio[at]),
                low=float(low[at]),
                high=float(high[at]),
                p=float(estimated.p[at]),
                p_adjusted=float(adjusted[at]),
                rows=rows,
                effect=float(effects[at]),
                loads=family.loads[at],
                n_a=int(n_a[at]),
                n_b=int(n_b[at]),
                in_turns=family.in_turns,
            )
        )
    return numbers


def _mean(logarithms: Floats) -> float:
    values = logarithms[~np.isnan(logarithms)]
    return math.exp(values.mean()) if len(values) else math.nan


def _of_the_machine(families: Sequence[Family], judged: list[Judged]) -> list[Judged]:
    """Return verdicts in which the machine is not taken for a change.

    Where all that the clock changed changed one way, and nothing that determines any of it differs,
    it is the machine. Processes that took turns met one machine.
    """
    rows = whole_stages.every([one for one in families if not one.in_turns])
    by_clock = (verdict.CLOCK, verdict.CALLS)
    moved = {
        number: pair
        for number, pair in rows
        if judged[number].row.kind in MOVED and judged[number].row.evidence in by_clock
    }
    wholes = {judged[number].stage.kind for number, _ in rows} & {*MOVED}
    ways = {judged[number].row.kind for number in moved} | wholes
    pairs = [pair for number, pair in rows if number in moved or wholes]
    if len(ways) != 1 or not all(itertools.starmap(rules.nothing_differs, pairs)):
        return judged
    stages = {id(one): one for number, _ in rows if (one := judged[number].stage).kind in MOVED}
    excused = {number: _excused(one) for number, one in stages.items()}
    for number, _ in rows:
        row, stage = judged[number]
        row = _excused(row) if number in moved else row
        judged[number] = Judged(row, excused.get(id(stage), stage))
    return judged


def _excused(one: Verdict) -> Verdict:
    needs = verdict.NEEDS_TURNS
    return replace(one, kind=UNSURE, cause=verdict.MACHINE, needs=needs, machine=one.ratio)
