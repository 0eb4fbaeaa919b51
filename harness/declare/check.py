"""Check how a workload is declared, before anything is measured: what is wrong, and where."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.declare.names import RESERVED_AXES, known_names
from harness.declare.workload import (
    PRECISIONS,
    TRANSFORMS,
    Workload,
    WorkloadError,
    keywords,
    name_of,
    where,
)
from harness.errors import nearest
from harness.targets.described_gpu import is_file
from harness.targets.registry import TARGETS

known_names.update(transforms=TRANSFORMS, targets=TARGETS, precisions=PRECISIONS)

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


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
    for target in filter(is_file, workload.targets):
        raise WorkloadError(
            f"{here}: targets names the file {target!r}, and a path holds on one machine only. "
            "Name 'gpu' here, and the file when it is measured: `harness run --target "
            "gpu:FILE.pbtxt`."
        )
    for attribute, known in known_names.items():
        for name in getattr(workload, attribute):
            if name not in known:
                raise WorkloadError(
                    f"{here}: {attribute} names {name!r}.{nearest(name, list(known))} "
                    f"There are: {', '.join(known)}."
                )
    if workload.vmap_batch < 1:
        raise WorkloadError(f"{here}: vmap_batch is {workload.vmap_batch!r}; expected at least 1.")
    _check_signatures(workload, here)
    _check_baselines(workload, here)


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


def _check_baselines(workload: type[Workload], here: str) -> None:
    for hook in ("baseline", "reference"):
        function: Any = getattr(workload, hook)
        if function is not None:
            _check_callable(here, hook, function)
            _check_parameters(workload, here, hook, function)
    for hook in ("fused_cpu", "fused_gpu"):
        function = getattr(workload, hook)
        if function is None:
            continue
        _check_callable(here, hook, function)
        if not _binds(function, 0, {}):
            raise WorkloadError(
                f"{here}: {hook} takes {_named(function)}; expected a function without parameters "
                "that imports its compiler and returns the function to call."
            )
        if workload.baseline is None:
            raise WorkloadError(
                f"{here}: {hook} is there without baseline, so nothing would be compared; declare "
                "baseline(xp, ...) as well."
            )


def _check_callable(here: str, hook: str, function: object) -> None:
    if not callable(function):
        raise WorkloadError(f"{here}: {hook} is {function!r}; expected a static method.")


def _check_parameters(
    workload: type[Workload], here: str, hook: str, function: Callable[..., Any]
) -> None:
    wanted = inspect.signature(workload.function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in wanted):
        return  # only its inputs tell how many there are
    names = [p.name for p in wanted if p.kind in _POSITIONAL and p.name not in workload.static]
    required = [p.name for p in wanted if p.name in names and p.default is inspect.Parameter.empty]
    static = dict.fromkeys(workload.static)
    if _binds(function, 1 + len(names), static) or _binds(function, 1 + len(required), static):
        return
    first = "xp" if hook == "baseline" else "np"
    expected = ", ".join([first, *names, *(f"{name}=..." for name in static)])
    raise WorkloadError(
        f"{here}: {hook} takes {_named(function)}; expected ({expected}): the namespace, and the "
        "parameters of function, static ones by keyword."
    )


def _binds(function: Callable[..., Any], count: int, keywords: dict[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count, **keywords)
    except TypeError:
        return False
    return True


def _named(function: Callable[..., Any]) -> str:
    return str(inspect.signature(function)).partition(" ->")[0]
