"""Steps in one series of times. What finds them is asv's; which of them count is decided here."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from asv.step_detect import detect_steps

Floats = np.ndarray[Any, np.dtype[np.float64]]
Positions = np.ndarray[Any, np.dtype[np.int64]]

CONFIRMED, NEW = "confirmed", "new"

LEAST = 3
"""Points without which there is no step in times: two before it, and one after."""


class Level(NamedTuple):
    """A stretch of a series without a step."""

    positions: Positions
    """Of its points; of an outlier between them there is none."""
    value: float
    """Their median."""
    scatter: float
    """Their mean distance from it."""


def levels(values: Floats, weights: Floats, effect: float) -> list[Level]:
    """Return the levels of a series, in order; between each and the next is a step that counts.

    asv's step detection (:func:`asv.step_detect.detect_steps`) divides the series. A level of
    one point in the middle or at the beginning is an outlier and left out; then neighbours are
    joined, the most alike first, until each step is at least `effect`, and larger than the scatter
    on both of its sides.

    `values` stand in order of time; those that are NaN are missing. A weight that is NaN is as much
    as the median of the others.
    """
    present = np.flatnonzero(np.isfinite(values))
    if not len(present):
        return []
    if len(present) < LEAST or not _may_hold_a_step(values[present], effect):
        return [_level(values, present)]
    given = [None if math.isnan(weight) else weight for weight in weights[present].tolist()]
    pieces = [
        present[start:stop] for start, stop, *_ in detect_steps(values[present].tolist(), given)
    ]
    last = len(pieces) - 1
    kept = [part for number, part in enumerate(pieces) if len(part) > 1 or number == last]
    return _joined(values, [_level(values, part) for part in kept], effect)


def state(after: Level, is_last: bool) -> str:
    """Return whether a step is confirmed by a second point after it, or so far rests on one."""
    return NEW if is_last and len(after.positions) == 1 else CONFIRMED


def _level(values: Floats, positions: Positions) -> Level:
    own = values[positions]
    middle = float(np.median(own))
    return Level(positions, middle, float(np.mean(np.abs(own - middle))))


def _may_hold_a_step(values: Floats, effect: float) -> bool:
    """Return False if no two levels of these points can differ by `effect`.

    A level has two or more points that follow each other, or is the last one, or is joined from
    such levels; so it can be divided into pairs and triples of neighbours. The median of a union
    lies between the least and the largest median of its parts. Hence every level lies within the
    range of all pairs' and triples' medians and the last point. Most series of a healthy history
    end here, without asv's search.
    """
    first, second, third = values[:-2], values[1:-1], values[2:]
    triples = np.maximum(np.minimum(first, second), np.minimum(np.maximum(first, second), third))
    bounds = np.concatenate([(values[:-1] + values[1:]) / 2, triples, values[-1:]])
    return bool(bounds.max() >= bounds.min() * (1 + effect))


def _joined(values: Floats, pieces: list[Level], effect: float) -> list[Level]:
    while len(pieces) > 1:
        sizes = [_size(*pair) for pair in itertools.pairwise(pieces)]
        least = min(range(len(sizes)), key=sizes.__getitem__)
        if sizes[least] >= 1 + effect:
            break
        both = np.concatenate([pieces[least].positions, pieces[least + 1].positions])
        pieces[least : least + 2] = [_level(values, both)]
    return pieces


def _size(before: Level, after: Level) -> float:
    """Return how many times the lower level the higher one is; 1 where the scatter is as large.

    Infinite where the lower one is not above 0, as of a count.
    """
    low, high = sorted((before.value, after.value))
    if high - low <= max(before.scatter, after.scatter):
        return 1.0
    return high / low if low > 0 else math.inf
