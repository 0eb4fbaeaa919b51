"""Check the functions of a workload: what they are, and whether one takes what another gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from harness.declare import axes, jitted
from harness.declare.workload import Workload, keywords

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def problems(workload: type[Workload]) -> Iterator[str]:
    """Yield what is wrong, a sentence each; one may rely on those before it not being said."""
    for find in (_of_methods, _of_function, _of_signatures, _of_static, _of_baselines):
        yield from find(workload)


def _of_methods(workload: type[Workload]) -> Iterator[str]:
    try:
        made = workload()
    except Exception as error:  # whatever a user's class does
        yield f"it cannot be made without arguments: {type(error).__name__}: {error}."
        return
    for name in ("inputs", "skip"):
        method: Any = getattr(made, name)
        if not inspect.isroutine(method):
            yield f"{name} is {method!r} of type {type(method).__name__}; expected a method."


def _of_function(workload: type[Workload]) -> Iterator[str]:
    function: Any = workload.function
    what = f"function is {function!r}"
    if not callable(function):
        yield f"{what} of type {type(function).__name__}; expected a function that JAX can trace."
    if inspect.isclass(function):
        yield (
            f"{what}, and calling a class makes an object. Name the method that computes, such as "
            "`staticmethod(Model(...).predict)`, or write a function that makes it and calls it."
        )
    inner = inspect.unwrap(function)
    for one in (inner, type(inner).__call__):
        if inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one):
            yield f"{what}, which is asynchronous: JAX cannot trace it. Write it without `async`."
        if inspect.isgeneratorfunction(one):
            yield f"{what}, which is a generator: JAX cannot trace it. Return the values instead."
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:
        yield f"{what}, whose parameters Python cannot tell. Name a function that calls it."
        return
    if names[:1] == ["self"]:
        yield f"{what}, which takes self. It is called without one: make it a staticmethod."


def _of_signatures(workload: type[Workload]) -> Iterator[str]:
    given = axes.arguments(workload.sweep)
    missing = f"which is no axis of its sweep; the axes are {sorted(given)}."
    parameters, takes_any = keywords(workload.function)
    for name in workload.static:
        if name not in given:
            yield f"static names {name!r}, {missing}"
        if name not in parameters and not takes_any:
            yield (
                f"static names {name!r}, which function does not take; its parameters are "
                f"{parameters}."
            )
    if workload.donate and jitted.find(workload.function) is not None:
        yield (
            f"donate names {list(workload.donate)}, and function is jitted already: it is measured "
            "as it is. Donate there (donate_argnames=...), and leave donate out."
        )
        return
    for name in workload.donate:
        if name not in parameters:
            yield (
                f"donate names {name!r}, which is no parameter of function; they are {parameters}."
            )
    inputs = workload().inputs  # bound: without self, and whether it needs self or not
    wanted, inputs_takes_any = keywords(inputs)
    defaults = inspect.signature(inputs).parameters
    for name in wanted:
        if name not in given and defaults[name].default is inspect.Parameter.empty:
            yield f"inputs wants {name!r}, {missing}"
    for axis, values in workload.sweep.items():
        gives = {axis, *axes.coupled(values)}
        if not inputs_takes_any and gives.isdisjoint((*wanted, *workload.static)):
            yield (
                f"axis {axis!r} reaches neither inputs (which takes {wanted}) nor function (it is "
                "not static), so its values would all measure the same."
            )


def _of_static(workload: type[Workload]) -> Iterator[str]:
    """Ask JAX's own `jit` for nothing that it cannot do: a static argument is hashed."""
    own = jitted.find(workload.function)
    if own is not None and not own.takes_shapes:
        return
    for axis, values in workload.sweep.items():
        for value in values:
            for name, thing in axes.given(workload.sweep, {axis: value}).items():
                if name in workload.static and not _is_hashable(thing):
                    yield (
                        f"static names {name!r}, which is {thing!r} of type "
                        f"{type(thing).__name__} where {axis} is {value!r}: JAX hashes static "
                        "arguments, and this has no hash. Make it a frozen dataclass or a tuple, "
                        "or let inputs return it."
                    )


def _is_hashable(thing: object) -> bool:
    try:
        hash(thing)
    except TypeError:
        return False
    return True


def _of_baselines(workload: type[Workload]) -> Iterator[str]:
    for hook in ("baseline", "reference", "fused_cpu", "fused_gpu"):
        function: Any = getattr(workload, hook)
        if function is None:
            continue
        if not callable(function):
            yield f"{hook} is {function!r}; expected a static method."
        takes = f"{hook} takes {str(inspect.signature(function)).partition(' ->')[0]}"
        if hook in ("baseline", "reference"):
            expected = _unlike_function(workload, function, "xp" if hook == "baseline" else "np")
            if expected:
                yield (
                    f"{takes}; expected ({expected}): the namespace, and the parameters of "
                    "function, static ones by keyword."
                )
            continue
        if not _binds(function, 0, {}):
            yield (
                f"{takes}; expected a function without parameters that imports its compiler and "
                "returns the function to call."
            )
        if workload.baseline is None:
            yield (
                f"{hook} is there without baseline, so nothing would be compared; declare "
                "baseline(xp, ...) as well."
            )


def _unlike_function(workload: type[Workload], hook: Callable[..., Any], first: str) -> str:
    """Return the parameters that a hook should have, empty if it takes them."""
    wanted = inspect.signature(workload.function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in wanted):
        return ""  # only its inputs tell how many there are
    names = [p.name for p in wanted if p.kind in _POSITIONAL and p.name not in workload.static]
    required = [p.name for p in wanted if p.name in names and p.default is inspect.Parameter.empty]
    static = dict.fromkeys(workload.static)
    if any(_binds(hook, 1 + len(some), static) for some in (names, required)):
        return ""
    return ", ".join([first, *names, *(f"{name}=..." for name in static)])


def _binds(function: Callable[..., Any], count: int, keywords: dict[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count, **keywords)
    except TypeError:
        return False
    return True
