"""Check how a workload declares its baselines, before anything is measured."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from harness.declare.workload import Workload, WorkloadError

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_hooks(workload: type[Workload], here: str) -> None:
    """Raise :class:`WorkloadError` if a hook does not take what it will be given.

    `here` says where the workload is; nothing is called.
    """
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
