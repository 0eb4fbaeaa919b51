"""What grows with an axis: the compile and all in it, trace and lower, of several cases."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import msgspec

from harness.errors import UsageError, find_name
from harness.ir import build
from harness.ir.build import BuiltTexts, SeveralCases, one_case
from harness.ir.power_law import POWER_LAW, fit
from harness.program.compiler import callers
from harness.workload.workload import Case, Workload, enumerate_cases, name_of

LEAST_VALUES = 3
"""A line goes through any two."""

_Points = dict[tuple[str, str], dict[float, list[float]]]
"""Samples by value of the axis, by kind and name of what was measured."""


class Growth(msgspec.Struct):
    """How one thing grows with an axis, as y = a * axis ** exponent."""

    kind: str
    """`stage`, `group`, `pass` and `line` are seconds, `count` are none."""
    name: str
    values: dict[str, float]
    """The median at each value of the axis; none where there was nothing."""
    exponent: float | None
    """By least squares of the logarithms; None where fewer than three values have it."""
    low: float | None
    """Of its 95 % interval."""
    high: float | None
    is_power: bool
    """False where the points are off the line by more than they scatter."""

    each: float | None
    """By how much it grows for each more of the axis, between the two largest values; of a count
    that is a polynomial of the axis no power tells as much."""

    @property
    def most(self) -> float:
        """What it is at the largest value of the axis."""
        return next(reversed(self.values.values()), 0.0)


def cases(
    workload: type[Workload],
    axis: str,
    choices: Sequence[str],
    transform: str | None,
    target: str | None,
) -> list[tuple[float, Case]]:
    """Return the cases that differ in one axis only, by its value."""
    axis = find_name(axis, workload.sweep, "axis")
    if any(choice.partition("=")[0].strip() == axis for choice in choices):
        raise UsageError(f"--against {axis} goes over all values of {axis}: drop --case {axis}=...")
    chosen: dict[float, Case] = {}
    values = list(dict.fromkeys(case.axes[axis] for case in enumerate_cases(workload)))
    skipped: list[UsageError] = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            continue
        try:
            chosen[value] = one_case(workload, [*choices, f"{axis}={value!r}"], transform, target)
        except SeveralCases:
            raise
        except UsageError as error:  # the workload skips it
            skipped.append(error)
    if skipped and not chosen:
        raise skipped[0]
    if len(chosen) < LEAST_VALUES:
        raise UsageError(
            f"--against {axis}: {name_of(workload)} has the values {', '.join(map(repr, values))}; "
            f"{len(chosen)} of them can be compiled, as positive numbers. How something grows "
            f"takes at least {LEAST_VALUES}: add values to its sweep."
        )
    return sorted(chosen.items())


def measure(
    workload: type[Workload],
    chosen: Sequence[tuple[float, Case]],
    rounds: int,
    on_step: Callable[[str, str], None],
) -> list[Growth]:
    """Compile each case once a round, in a process each, and return what grows, the dearest first.

    Counts are taken from the first round: they are the same in every.
    """
    points: _Points = {}
    for turn in range(rounds):
        for value, case in chosen:
            wanted = build.job(workload, case, "", with_facts=True, with_inside=True)
            made = build.build(wanted, functools.partial(on_step, wanted.label))
            for kind, name, amount in _amounts(made):
                if turn == 0 or kind != "count":
                    points.setdefault((kind, name), {}).setdefault(value, []).append(amount)
    grown = [_growth(*key, values) for key, values in points.items()]
    largest = f"{chosen[-1][0]:g}"
    return sorted(grown, key=lambda one: -one.values.get(largest, 0.0))


def _amounts(made: BuiltTexts) -> Iterator[tuple[str, str, float]]:
    """Yield kind, name and amount of all that one compile tells."""
    for stage in made.python:
        yield "stage", stage.name, stage.wall_s
        yield "count", f"Python calls in {stage.name}", stage.calls
        for one in callers.lines(stage):
            yield "count", f"{stage.name} calls of {one.name}:{one.line}", one.own_calls
    facts = msgspec.to_builtins(made.facts)
    for name in ("jaxpr_equations", "stablehlo_operations", "hlo_instructions"):
        if facts.get(name) is not None:
            yield "count", name.replace("_", " "), facts[name]
    inside = made.inside
    if inside is None:
        return
    yield "stage", "compile", inside.wall_s
    yield "count", "kernels", len(inside.kernels)
    for group in inside.groups:
        yield "group", f"{group.name}: {group.part}".removesuffix(": "), group.wall_s
    passes: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
    waiting = [inside.tree]
    while waiting:
        branch = waiting.pop()
        waiting += branch.inside
        passes[branch.name][0] += branch.own_wall_s
        passes[branch.name][1] += branch.count
    for name, (wall_s, count) in passes.items():
        yield "pass", name, wall_s
        yield "count", f"runs of {name}", count


def _growth(kind: str, name: str, points: dict[float, list[float]]) -> Growth:
    flat = sorted(points.items())
    fitted: dict[str, Any] = fit([value for value, _ in flat], [samples for _, samples in flat])
    medians = [(value, median(samples)) for value, samples in flat]
    each = None
    if len(medians) > 1:
        (before, least), (last, most) = medians[-2:]
        each = (most - least) / (last - before)
    enough = fitted.get("n_values", 0) >= LEAST_VALUES

    def finite(name: str) -> float | None:
        return fitted[name] if enough and math.isfinite(fitted[name]) else None

    values = {f"{value:g}": middle for value, middle in medians}
    bounds = (finite("exponent"), finite("low"), finite("high"))
    return Growth(kind, name, values, *bounds, fitted.get("fit") == POWER_LAW, each)
