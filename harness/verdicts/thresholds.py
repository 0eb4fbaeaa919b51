"""The smallest effect that counts: what identical arms of this machine rarely exceed."""

from __future__ import annotations

import math
import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import UsageError, nearest
from harness.frame.frame import axis_column
from harness.records.project_tables import FILE, table_of
from harness.records.schema import plain_axes
from harness.stages import registry
from harness.verdicts.error_rates import ErrorRates, Noise
from harness.verdicts.pairs import CASE, Row, axes_key, axes_of

QUANTILE = 0.9
"""The share of the ratios of identical arms that stays within a stage's threshold."""

LEAST_CASES = 10
"""A pair of identical arms with fewer says nothing of a whole stage."""

PRIOR = 4
"""A case's own ratios count as much as its stage once there are so many."""

_LEAST = 1e-3
"""No case is taken to scatter by less, in log time: chance brings single ratios close to 1."""

Scatter = Mapping[tuple[object, ...], float]
"""The threshold of each case, and by (machine, stage) that of all others: 0.07 is 7 % more time."""


def scatter_of(rates: Iterable[ErrorRates]) -> Scatter:
    """Return the thresholds that identical arms of machines ask for.

    With s = |ln ratio|, of a stage: the 90 % quantile q of s over the cases of a pair of arms, of
    several pairs the median, the lower one of two. Of a case with n ratios in that stage

        ln(1 + threshold) = q · (median s of the case / median s of the stage) ^ (n / (n + 4))

    so few ratios of its own say little, and a run that was disturbed is outvoted by the next two,
    in single cases as in the whole.

    `rates` are of one effort; another one scatters otherwise.
    """
    cases: dict[tuple[object, ...], list[float]] = defaultdict(list)
    pairs: dict[tuple[object, ...], dict[object, list[float]]] = {}
    for run, one in enumerate(rates):
        for noise in one.noise:
            stage = pairs.setdefault((one.machine, noise.stage), defaultdict(list))
            for number, ratio in enumerate(noise.ratios):
                if 0 < ratio < math.inf:
                    cases[_case(one.machine, noise)].append(abs(math.log(ratio)))
                    stage[run, number].append(abs(math.log(ratio)))
    found: dict[tuple[object, ...], float] = {}
    usual: dict[tuple[object, ...], float] = {}
    for name, by_pair in pairs.items():
        whole = [own for own in by_pair.values() if len(own) >= LEAST_CASES]
        if whole:
            found[name] = statistics.median_low(float(np.quantile(s, QUANTILE)) for s in whole)
            usual[name] = statistics.median_low(statistics.median(s) for s in whole)
    for case, own in cases.items():
        name = case[0], case[1 + CASE.index("stage")]
        if name in found:
            relative = max(statistics.median_low(own), _LEAST) / max(usual[name], _LEAST)
            found[case] = found[name] * relative ** (len(own) / (len(own) + PRIOR))
    return {name: math.expm1(logarithm) for name, logarithm in found.items()}


def _case(machine: str, noise: Noise) -> tuple[object, ...]:
    axes = {axis_column(name): value for name, value in plain_axes(noise.axes).items()}
    return (machine, *(getattr(noise, name) for name in CASE), axes_key(axes))


def use_those_of(project: Path) -> None:
    """Let what counts be what pyproject.toml says, under [tool.harness.thresholds]."""
    registry.thresholds.clear()
    file = project / FILE
    try:
        table: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # no TOML, or no UTF-8
        raise UsageError(f"{file} cannot be read: {error}.") from None
    here = f"{file}: [tool.harness.thresholds]"
    table = table_of(table, "thresholds", file)
    for stage, share in table.items():
        if stage not in registry.STAGES:
            like = nearest(stage, list(registry.STAGES))
            known = ", ".join(registry.STAGES)
            raise UsageError(f"{here} has {stage!r}, which is no stage.{like} There are: {known}.")
        if type(share) not in (int, float) or not 0 < share <= 1:
            raise UsageError(
                f"{here}: {stage} is {share!r}; expected the smallest change that counts, as a "
                "share of the time: 0.1 for 10 %, at most 1."
            )
    registry.thresholds.update(table)


def smallest_effect(scatter: Scatter, a: Row, b: Row, axes: Sequence[str]) -> float:
    """Return the smallest effect that counts between two rows: 0.05 is 5 % more time.

    It is the stage's own or the project's; or, where that is more, what the machine of a row asks
    for.
    """
    least = registry.effect(b["stage"])
    for row in (a, b) if scatter else ():
        case = (row["machine"], *(row[name] for name in CASE), axes_key(axes_of(row, axes)))
        stage = row["machine"], row["stage"]
        least = max(least, scatter.get(case, scatter.get(stage, 0.0)))
    return least
