"""A stage under equal conditions: the family of rows that are judged together, and as a whole."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.frame.pairs import Row
from harness.frame.ratios import LEAST_PROCESSES
from harness.verdicts import clocks, statistics
from harness.verdicts.loads import of_row, unlike
from harness.verdicts.proof import Equal
from harness.verdicts.statistics import Bools, Floats
from harness.verdicts.verdict import Load

LEAST_CASES = 3
"""Of fewer, what happened to the stage is what happened to its rows."""

SLOW = 0.2
"""The least by which a process is slower in most of its cases that is slower than others."""

LEAST_SLOW = 3
"""So many processes of an arm are slower than others before that is told: two are so by chance on a
busy machine, in 2 % of the families of identical arms."""

WITHIN = 0.9
"""What so many of the rows stay within in which nothing differs, the machine does by itself."""


class Whole(NamedTuple):
    """What all rows of a family did together."""

    ratio: float = math.nan
    """Of the typical case."""
    p: float = math.nan
    cases: int = 0
    effect: float = math.nan
    """The smallest that counts."""


@dataclass(eq=False)
class Family:
    """The rows of one stage, under one machine, target and scenario, that both arms share."""

    pairs: Sequence[tuple[Row, Row]]
    numbers: Sequence[int]
    """Which pairs they are."""
    effects: Floats
    """The smallest change of each row that counts; raised by what the machine does by itself."""
    in_turns: bool
    """The processes of both sides took turns."""
    equal: Sequence[Equal]
    """What proves of each row that nothing which determines it differs."""
    share: float = 1.0
    """The part of the error that this look may make."""

    def __post_init__(self) -> None:
        taken = [clocks.seconds(a, b) for a, b in self.pairs]
        self.clocks = [clock for *_, clock in taken]
        """Which clock each row is on."""
        self.loads = [None if self.in_turns else (of_row(a), of_row(b)) for a, b in self.pairs]
        """What both sides of each row met; None where that is no matter."""
        self.unlike = [one if one and unlike(*one) else None for one in self.loads]
        """The same where the clock of one side met another machine than that of the other."""
        self.open = np.array([one in (Equal.NOTHING, Equal.PROGRAM) for one in self.equal])
        """Which rows something that determines them may differ in."""
        self.sides = (
            _padded([one for one, _, _ in taken]),
            _padded([other for _, other, _ in taken]),
        )
        """Logarithms of both arms, float64 (rows, processes), as measured."""
        a, b = map(np.isnan, self.sides)
        self.paired = self.in_turns and np.array_equal(a, b)
        """Whether processes of both arms took turns, and none is missing."""
        self.effects = np.maximum(self.effects, self._by_itself())

    def _by_itself(self) -> float:
        """Return how far rows in which nothing differs are apart all the same, mostly."""
        a, b = self.sides
        proven = np.array([one is not Equal.NOTHING for one in self.equal])
        if self.in_turns or np.count_nonzero(proven) < LEAST_CASES:
            return 0.0
        moved = np.abs(np.nanmean(b[proven], axis=1) - np.nanmean(a[proven], axis=1))
        return math.expm1(float(np.quantile(moved, WITHIN)))

    @property
    def some_unlike(self) -> tuple[Load, Load] | None:
        """The unlike loads of the first row that has such; None where none has."""
        return next(filter(None, self.unlike), None)

    def units(self) -> tuple[Floats, Floats]:
        """Return one value per process and arm: the median of value / level over its open cases.

        Processes stand in the order in which they were started, so the k-th is that of each
        workload's k-th process where processes are of one workload.
        """
        a, b = self._of_open()
        level = _levels(a, b)
        return statistics.medians(a - level), statistics.medians(b - level)

    def _of_open(self) -> tuple[Floats, Floats]:
        a, b = self.sides
        return a[self.open], b[self.open]

    def moved(self) -> Whole:
        """Return what all open rows did together: of fewer than three, or few processes, nothing.

        Of each process the median over its cases counts, or the mean where that shows less: one
        case that is five times slower moves the mean, cases that move in both directions may move
        the median, and neither is the stage.
        """
        n_open = int(self.open.sum())
        if n_open < LEAST_CASES:
            return Whole()
        a, b = self.units()
        if min(map(len, (a, b))) < LEAST_PROCESSES:
            return Whole()
        both = self._of_open()
        means = [np.nanmean(side - _levels(*both), axis=0) for side in both]
        one, other = (np.stack(side) for side in zip((a, b), means, strict=True))
        estimated = statistics.estimates(one, other, self.paired, self.share)
        least = int(np.argmin(np.abs(np.log(estimated.ratio))))
        # What arms that were measured one after the other share with nothing in the process, such
        # as the memory of a busy machine, moves all rows alike.
        effect = float(np.median(self.effects[self.open])) * (1 if self.in_turns else 2)
        ratio, half = float(estimated.ratio[least]), n_open // 2
        if 2 * half == n_open and max(ratio, 1 / ratio) >= 1 + effect:
            # Half of the cases are not most of them.
            cases = np.sort(np.nanmean(both[1], axis=1) - np.nanmean(both[0], axis=1))
            low, high = np.exp(cases[half - 1 : half + 1]).tolist()
            near = max(1.0, low) if ratio > 1 else min(1.0, high)
            ratio = near if max(near, 1 / near) < 1 + effect else ratio
        return Whole(ratio, float(estimated.p[least]), n_open, effect)

    def slow_processes(self) -> tuple[Bools, Bools]:
        """Return which processes of both arms are slower than the others in most cases."""
        nothing = np.zeros(0, np.bool_), np.zeros(0, np.bool_)
        if self.open.sum() < LEAST_CASES:
            return nothing
        a, b = self.units()
        both = np.concatenate([a, b])
        both = both[~np.isnan(both)]
        if len(both) < 2 * LEAST_PROCESSES:
            return nothing
        spread = 1.4826 * float(np.median(np.abs(both - np.median(both))))
        least = max(math.log1p(SLOW), math.log1p(2 * float(np.median(self.effects))), 3.5 * spread)
        usual = float(np.median(both))
        return a - usual > least, b - usual > least

    def calls(self) -> tuple[Floats, Floats]:
        """Return what 90 % of the calls of each process do not exceed, as logarithms; NaN: none."""
        samples = [[row.get("p90_samples") or () for row in pair] for pair in self.pairs]
        times = [pair if all(map(clocks.are_times, pair)) else ((), ()) for pair in samples]
        one, other = (_padded([pair[side] for pair in times]) for side in (0, 1))
        return one, other

    def wall(self) -> tuple[Floats, Floats]:
        """Return the wall time of the processes of each side, as logarithms."""
        one, other = (_padded([pair[side]["samples"] for pair in self.pairs]) for side in (0, 1))
        return one, other

    def expected_waiting(self) -> list[float]:
        """Return how many seconds the load makes a process wait; 0 where it is like, and low.

        Where as many processes want a core as the load average says, each waits about as often as
        long as it computes.
        """
        expected = []
        for at, met in enumerate(self.loads):
            matters = met and (self.unlike[at] or any(one.is_full for one in met))
            most = max(one.waiting_per_second for one in met) if met and matters else 0.0
            expected.append(most * max(math.exp(np.nanmean(side[at])) for side in self.sides))
        return expected

    def load_waiting(self) -> Floats:
        """Return how many seconds the load makes processes wait that took turns; else infinity."""
        if not self.in_turns:
            return np.full(len(self.pairs), np.inf)
        share = [max(of_row(row).waiting_per_second for row in pair) for pair in self.pairs]
        one, other = (np.nanmean(side, axis=1) for side in self.sides)
        return np.asarray(np.array(share) * np.exp(np.maximum(one, other)))

    def waiting(self) -> tuple[Floats, Floats]:
        """Return the wall time beyond CPU time of each side's processes, seconds; NaN: none."""
        samples = [[row.get("waiting_samples") or () for row in pair] for pair in self.pairs]
        one, other = (_table([pair[side] for pair in samples]) for side in (0, 1))
        return one, other


def _levels(a: Floats, b: Floats) -> Floats:
    """Return the level of each case: half way between the medians of both arms, (rows, 1)."""
    return np.asarray((statistics.medians(a.T) + statistics.medians(b.T))[:, None] / 2)


def _padded(rows: Sequence[Sequence[float]]) -> Floats:
    """Return logarithms, a row each, with NaN behind those of fewer processes."""
    return np.log(_table(rows))


def _table(rows: Sequence[Sequence[float]]) -> Floats:
    table = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
    for at, row in enumerate(rows):
        table[at, : len(row)] = row
    return table


def more_slow_processes(
    slow: Mapping[int, tuple[Bools, Bools]], side: int
) -> Mapping[int, tuple[int, float]]:
    """Return, by family, how many processes of an arm are slower than all others, and p of that.

    Processes are disturbed by chance as well: how often, the other arm shows, in all families.
    Three at least, more than in the other arm, and fewer than all that would be the whole stage.
    """
    other = [slow_ones[1 - side] for slow_ones in slow.values()]
    elsewhere, of_elsewhere = sum(int(one.sum()) for one in other), sum(map(len, other))
    slow_ones = {}
    for number, sides in slow.items():
        count, of = int(sides[side].sum()), len(sides[side])
        if LEAST_SLOW <= count < of and count > int(sides[1 - side].sum()):
            slow_ones[number] = count, statistics.p_of_share(count, of, elsewhere, of_elsewhere)
    return slow_ones


def every(families: Sequence[Family]) -> list[tuple[int, tuple[Row, Row]]]:
    """Return the number and the rows of each pair in some families."""
    both = (zip(one.numbers, one.pairs, strict=True) for one in families)
    return list(itertools.chain.from_iterable(both))
