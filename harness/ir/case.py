"""Choose the one case whose program is wanted, by what is typed on a command line."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Sequence

from harness import targets
from harness.declare import discovery
from harness.declare.workload import (
    TRANSFORMS,
    Case,
    Workload,
    enumerate_cases,
    name_of,
    skip_reason,
)
from harness.errors import UsageError, find_name


class SeveralCases(UsageError):
    """What was typed leaves several cases; the text lists them."""


LISTED = 20
"""A longer list of cases is cut."""


def one_case(
    workload: type[Workload],
    choices: Sequence[str] = (),
    transform: str | None = None,
    target: str | None = None,
) -> Case:
    """Return the one case that is meant.

    `choices` are `AXIS=VALUE` texts, `transform=` and `target=` among them; a transform or target
    that the workload does not list may be asked for. Without them it is `forward`, if the workload
    has it, and the first of its targets that this machine has.
    """
    keep = discovery.case_filter(choices)
    typed: dict[str, list[str]] = {"transform": [], "target": []}
    own: list[str] = []
    for choice in choices:
        axis, _, value = (part.strip() for part in choice.partition("="))
        typed.get(axis, own).append(value if axis in typed else choice)
    named = [transform] if transform else typed["transform"]
    wanted = [find_name(name, TRANSFORMS, "transform") for name in named] or _usual(workload)
    places = targets.names([target] if target else typed["target"]) or (_here(workload),)
    left = [case for case in _cases(workload, wanted, places) if keep(case)]
    if not left:
        if own:
            discovery.with_axes([workload], own)  # raises with what there is, if they are at fault
        raise UsageError(
            f"{name_of(workload)} has no case with {' and '.join(choices)} among those with "
            f"transform {', '.join(wanted)} and target {', '.join(places)}."
        )
    reasons = [skip_reason(workload, case) for case in left]
    able = [case for case, reason in zip(left, reasons, strict=True) if reason is None]
    if not able:
        raise UsageError(
            f"{name_of(workload)} skips {left[0].label or left[0].id}: {reasons[0]}. "
            "Choose another case with --case AXIS=VALUE."
        )
    if len(able) > 1:
        raise SeveralCases(_several(workload, able))
    return able[0]


def changed(workload: type[Workload], case: Case, changes: str) -> Case:
    """Return the case that `changes`, such as `batch=64,dtype=float32`, makes of another."""
    # A value may hold commas itself: only those before the next AXIS= part the changes.
    given = re.split(r",(?=[^=,]+=)", changes)
    changed_axes = {change.partition("=")[0].strip() for change in given}
    rest = [
        f"{axis}={value if axis in ('transform', 'target') else repr(value)}"
        for axis, value in case.coordinates.items()
        if axis not in changed_axes
    ]
    return one_case(workload, [*given, *rest])


def _cases(workload: type[Workload], wanted: Sequence[str], places: Sequence[str]) -> list[Case]:
    first = workload.transforms[0]
    points = [case for case in enumerate_cases(workload, places) if case.transform == first]
    return [dataclasses.replace(case, transform=name) for case in points for name in wanted]


def _usual(workload: type[Workload]) -> list[str]:
    return ["forward"] if "forward" in workload.transforms else list(workload.transforms)


def _here(workload: type[Workload]) -> str:
    there = [name for name in workload.targets if not targets.find(name).lacking()]
    return there[0] if there else workload.targets[0]


def _several(workload: type[Workload], cases: Sequence[Case]) -> str:
    values: dict[str, set[str]] = {}
    for case in cases:
        for axis, value in case.coordinates.items():
            values.setdefault(axis, set()).add(repr(value))
    axes = [axis for axis, found in values.items() if len(found) > 1]
    lines = [
        " ".join(f"--case {shlex.quote(f'{axis}={case.coordinates[axis]}')}" for axis in axes)
        for case in cases[:LISTED]
    ]
    if len(cases) > LISTED:
        lines.append(f"... and {len(cases) - LISTED} more")
    return "\n  ".join([f"{name_of(workload)} has {len(cases)} such cases; add one of", *lines])
