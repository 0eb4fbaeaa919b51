"""The smallest effect that counts, per stage, raised where this machine shows more scatter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.frame.frame import axis_column
from harness.records.schema import plain_axes
from harness.verdicts.error_rates import ErrorRates, Noise
from harness.verdicts.pairing import case_key

DEFAULT = 0.10
"""Of stages that :data:`EFFECTS` does not name, such as those of a foreign suite."""

EFFECTS: Mapping[str, float] = {
    "trace": 0.10,
    "lower": 0.15,
    "compile": 0.05,
    "load": 0.10,
    "first_call": 0.10,
    "start": 0.10,
    "dispatch": 0.25,
    "execute": 0.05,
}
"""Smallest effect that counts, per stage: 0.05 is 5 % more time. About what 95 % of the ratios of
identical arms, calibrated, stayed within on two shared cores."""

SAFETY = 1.25
"""How much larger an effect must be than the largest that identical arms of the case have shown."""


def stage_effect(stage: str) -> float:
    """Return the smallest effect that counts in a stage, whatever the case."""
    return EFFECTS.get(stage, DEFAULT)


class Noises:
    """The smallest effects that count, from the A/A measurements of any number of machines."""

    def __init__(self, rates: Sequence[ErrorRates]) -> None:
        self._scatter: dict[tuple[object, ...], float] = {}
        for one in rates:
            for noise in one.noise:
                key = (one.machine, *_key_of_noise(noise))
                self._scatter[key] = max(self._scatter.get(key, 0.0), scatter(noise))

    def effect(self, a: Mapping[str, Any], b: Mapping[str, Any], axes: Sequence[str]) -> float:
        """Return the smallest effect that counts between two rows of the frame."""
        least = stage_effect(b["stage"])
        if not self._scatter:
            return least
        largest = max(self._scatter.get(_key_of_row(row, axes), 0.0) for row in (a, b))
        return max(least, SAFETY * largest)


def for_machines(rates: ErrorRates | Sequence[ErrorRates] | None) -> Noises:
    """Return the smallest effects that count, by what is known of the machines."""
    return Noises([rates] if isinstance(rates, ErrorRates) else list(rates or ()))


def scatter(noise: Noise) -> float:
    """Return the largest effect between identical arms: 0.07 for a ratio of 1.07 or 1/1.07."""
    known = [ratio for ratio in noise.ratios if 0 < ratio < math.inf]
    return max((max(ratio, 1 / ratio) - 1 for ratio in known), default=0.0)


def _key_of_noise(noise: Noise) -> tuple[object, ...]:
    axes = plain_axes(noise.axes)
    named = {axis_column(name): value for name, value in axes.items()}
    where = (noise.target, noise.transform, noise.precision, noise.scenario)
    return case_key(noise.workload, named, *where, noise.stage)


def _key_of_row(row: Mapping[str, Any], axes: Sequence[str]) -> tuple[object, ...]:
    named = {axis: row[axis] for axis in axes if axis in row}
    where = (row["target"], row["transform"], row["precision"], row["scenario"])
    return (row["machine"], *case_key(row["workload"], named, *where, row["stage"]))
