"""Check how a workload is declared, before anything is measured: what is wrong, and where."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.declare.workload import (
    PRECISIONS,
    TRANSFORMS,
    Workload,
    WorkloadError,
    keywords,
    name_of,
    where,
)
from harness.program.facts import TOTALS
from harness.sides.declared import check_hooks
from harness.stages.scenarios.registry import SCENARIOS
from harness.targets import TARGETS
from harness.targets.compile_only import is_file

RESERVED_AXES = frozenset(
    """
    machine commit commit_date started_at env python jax jaxlib workload version target transform
    scenario stage unit value calibrated low high n_processes samples status reason fingerprint
    effort dirty calibrated_samples entry_bytes precision backend threads comparable labels case
    self
    """.split()  # noqa: SIM905 - one name per line would say no more
) | set(TOTALS)
"""Names an axis cannot have, because the frame has a column of that name."""


def check(workload: type[Workload]) -> None:
    """Raise :class:`WorkloadError` if the declaration is wrong; nothing is called or traced."""
    here = where(workload)
    if inspect.isabstract(workload):
        missing = ", ".join(sorted(workload.__abstractmethods__))
        raise WorkloadError(f"{here} does not define {missing}; a workload needs both.")
    if "-" in name_of(workload):
        raise WorkloadError(
            f"{here}: its name {name_of(workload)!r} holds '-', which asv uses to number "
            "parameters; rename the class or the module."
        )
    if not isinstance(workload.sweep, Mapping):
        raise WorkloadError(
            f"{here}: sweep is {workload.sweep!r}; expected a mapping from axis name to values."
        )
    for axis, values in workload.sweep.items():
        _check_axis(here, axis, values)
    for attribute in ("static", "donate", "transforms", "targets", "scenarios", "precisions"):
        _check_names(here, attribute, getattr(workload, attribute))
    for transform in workload.transforms:
        if transform not in TRANSFORMS:
            raise WorkloadError(
                f"{here}: transforms names {transform!r}; known are {', '.join(TRANSFORMS)}."
            )
    for target in workload.targets:
        if is_file(target):
            raise WorkloadError(
                f"{here}: targets names the file {target!r}, and a path holds on one machine only. "
                "Name 'gpu' here, and the file when it is measured: `harness run --target "
                "gpu:FILE.pbtxt`."
            )
        if target not in TARGETS:
            raise WorkloadError(
                f"{here}: targets names {target!r}; known are {', '.join(TARGETS)}."
            )
    for scenario in workload.scenarios:
        if scenario not in SCENARIOS:
            raise WorkloadError(
                f"{here}: scenarios names {scenario!r}; known are {', '.join(SCENARIOS)}."
            )
    for precision in workload.precisions:
        if precision not in PRECISIONS:
            raise WorkloadError(
                f"{here}: precisions names {precision!r}; known are {', '.join(PRECISIONS)}."
            )
    if workload.vmap_batch < 1:
        raise WorkloadError(f"{here}: vmap_batch is {workload.vmap_batch!r}; expected at least 1.")
    _check_signatures(workload, here)
    check_hooks(workload, here)


def _check_names(here: str, attribute: str, value: object) -> None:
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(name, str) for name in value)
    ):
        raise WorkloadError(
            f"{here}: {attribute} is {value!r}; expected a sequence of names, such as "
            f"({str(value)!r},)."
        )
    if attribute in ("transforms", "targets", "scenarios") and not value:
        raise WorkloadError(f"{here}: {attribute} is empty, so there would be no case.")
    for name in value:
        if list(value).count(name) > 1:
            raise WorkloadError(f"{here}: {attribute} names {name!r} twice.")


def _check_axis(here: str, axis: object, values: object) -> None:
    if not isinstance(axis, str) or not axis.isidentifier():
        raise WorkloadError(f"{here}: axis {axis!r} is no identifier; it becomes an argument name.")
    if axis in RESERVED_AXES:
        raise WorkloadError(
            f"{here}: axis {axis!r} has the name of a column of the frame; choose another."
        )
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise WorkloadError(
            f"{here}: axis {axis!r} has {values!r}; expected a list of the values it takes."
        )
    if not values:
        raise WorkloadError(f"{here}: axis {axis!r} has no values, so there would be no case.")
    seen: set[str] = set()
    for value in values:
        if not _is_plain(value):
            raise WorkloadError(
                f"{here}: axis {axis!r} has the value {value!r} of type {type(value).__name__}; "
                "expected str, int, float, bool or a tuple of them. Name the thing by a plain "
                "value, and build it in inputs or function."
            )
        if repr(value) in seen:
            raise WorkloadError(
                f"{here}: axis {axis!r} has the value {value!r} twice: two cases would have one "
                "identity."
            )
        seen.add(repr(value))


def _is_plain(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    if type(value) is float:
        return math.isfinite(value)
    return type(value) in (str, int, bool)


def _check_signatures(workload: type[Workload], here: str) -> None:
    axes = set(workload.sweep)
    parameters, takes_any = keywords(workload.function)
    for name in workload.static:
        if name not in axes:
            raise WorkloadError(
                f"{here}: static names {name!r}, which is no axis of its sweep; the axes are "
                f"{sorted(axes)}."
            )
        if name not in parameters and not takes_any:
            raise WorkloadError(
                f"{here}: static names {name!r}, which function does not take; its parameters are "
                f"{parameters}."
            )
    for name in workload.donate:
        if name not in parameters:
            raise WorkloadError(
                f"{here}: donate names {name!r}, which is no parameter of function; they are "
                f"{parameters}."
            )
    inputs = workload().inputs  # bound: without self, and whether it needs self or not
    wanted, inputs_takes_any = keywords(inputs)
    for name in wanted:
        if name not in axes and _is_required(inputs, name):
            raise WorkloadError(
                f"{here}: inputs wants {name!r}, which is no axis of its sweep; the axes are "
                f"{sorted(axes)}."
            )
    for axis in workload.sweep:
        if axis not in wanted and not inputs_takes_any and axis not in workload.static:
            raise WorkloadError(
                f"{here}: axis {axis!r} reaches neither inputs (which takes {wanted}) nor function "
                "(it is not static), so its values would all measure the same."
            )


def _is_required(function: Callable[..., Any], name: str) -> bool:
    return inspect.signature(function).parameters[name].default is inspect.Parameter.empty
