"""Choose cases by the values of their axes, as they are typed on a command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.declare.workload import Case, Workload, enumerate_cases
from harness.errors import UsageError


def _wanted(choices: Sequence[str]) -> dict[str, set[str]]:
    wanted: dict[str, set[str]] = {}
    for choice in choices:
        axis, equals, value = choice.partition("=")
        if not equals or not axis:
            raise UsageError(f"--case {choice!r}: expected AXIS=VALUE, such as size=1024.")
        wanted.setdefault(axis.strip(), set()).add(value.strip())
    return wanted


def _matches(value: object, texts: set[str]) -> bool:
    return str(value) in texts or repr(value) in texts


def case_filter(choices: Sequence[str]) -> Callable[[Case], bool]:
    """Return a test for cases that have one of the chosen values on every chosen axis."""
    wanted = _wanted(choices)

    def keep(case: Case) -> bool:
        coordinates = case.coordinates
        return all(
            axis in coordinates and _matches(coordinates[axis], texts)
            for axis, texts in wanted.items()
        )

    return keep


def with_axes(workloads: Sequence[type[Workload]], choices: Sequence[str]) -> list[type[Workload]]:
    """Return the workloads that have a case left; raise with what there is if none has."""
    keep = case_filter(choices)
    left = [workload for workload in workloads if any(map(keep, enumerate_cases(workload)))]
    if left:
        return left
    values: dict[str, set[str]] = {}
    for workload in workloads:
        for case in enumerate_cases(workload):
            for axis, value in case.coordinates.items():
                values.setdefault(axis, set()).add(str(value))
    known = "; ".join(f"{axis}: {', '.join(sorted(found))}" for axis, found in values.items())
    raise UsageError(f"No case has {' and '.join(choices)}. The axes and their values: {known}.")
