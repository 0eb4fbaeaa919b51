"""Check how a workload is declared, before anything is measured: what is wrong, and where."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import nearest
from harness.targets.described_gpu import is_file
from harness.targets.registry import TARGETS
from harness.workload import axes, jitted
from harness.workload.axes import RESERVED_AXES, known_names
from harness.workload.code import ENV, project_folder
from harness.workload.location import locate
from harness.workload.workload import (
    PRECISIONS,
    TRANSFORMS,
    Workload,
    WorkloadError,
    keywords,
    name_of,
    where,
)

known_names.update(transforms=TRANSFORMS, targets=TARGETS, precisions=PRECISIONS)

_OF_EVERY_CASE = ("self", "precision", "transform", "target")
"""What `skip` gets besides the axes."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check(workload: type[Workload]) -> None:
    """Raise :class:`WorkloadError` if the declaration is wrong; nothing is called or traced."""
    if inspect.isabstract(workload):
        missing = ", ".join(sorted(workload.__abstractmethods__))
        raise WorkloadError(f"{where(workload)} does not define {missing}; a workload needs both.")
    for find in (
        _of_sweep,
        _of_names,
        _of_dependencies,
        _of_methods,
        _of_function,
        _of_signatures,
        _of_static,
        _of_baselines,
    ):
        for problem in find(workload):
            raise WorkloadError(f"{where(workload)}: {problem}")


# What is wrong, one sentence after the other; each may rely on those before it not being said.


def _of_sweep(workload: type[Workload]) -> Iterator[str]:
    if "-" in name_of(workload):
        yield (
            f"its name {name_of(workload)!r} holds '-', which asv uses to number parameters; "
            "rename the class or the module."
        )
    sweep: Any = workload.sweep
    if not isinstance(sweep, Mapping):
        yield f"sweep is {sweep!r}; expected a mapping from axis name to values."
    yield from _of_axes(sweep)


def _of_axes(sweep: Mapping[Any, Any]) -> Iterator[str]:
    for axis, values in sweep.items():
        if not _is_identifier(axis):
            yield f"axis {axis!r} is no identifier; it becomes an argument name."
        if axis in RESERVED_AXES:
            yield f"axis {axis!r} has the name of a column of the frame; choose another."
        if isinstance(values, str | bytes) or not isinstance(values, Sequence | Mapping):
            yield (
                f"axis {axis!r} has {values!r}; expected a list of the values it takes, or a "
                "mapping from their names."
            )
        if not values:
            yield f"axis {axis!r} has no values, so there would be no case."
        yield from _of_values(axis, values)
        if isinstance(values, Mapping):
            yield from _of_things(axis, values, sweep)


def _of_values(axis: str, values: Any) -> Iterator[str]:
    named = isinstance(values, Mapping)
    seen: set[str] = set()
    for value in values:
        if not axes.is_plain(value):
            name = getattr(value, "__name__", "NAME")
            yield (
                f"axis {axis!r} has the {'name' if named else 'value'} {value!r} of type "
                f"{type(value).__name__}; expected str, int, float, bool or a tuple of them. "
                f"Give it a name, which records and asv show: {axis!r}: {{{name!r}: ...}}."
            )
        if repr(value) in seen:
            yield (
                f"axis {axis!r} has the value {value!r} twice: two cases would have one identity."
            )
        seen.add(repr(value))


def _of_things(axis: str, values: Mapping[Any, Any], sweep: Mapping[str, Any]) -> Iterator[str]:
    names = axes.coupled(values)
    for name, thing in values.items():
        if not isinstance(thing, Mapping):
            if names:
                yield f"axis {axis!r} couples {names}, and {name!r} gives {thing!r}, no mapping."
        elif not thing:
            yield f"axis {axis!r} has the name {name!r} for no arguments at all: {thing!r}."
        elif sorted(map(repr, thing)) != sorted(map(repr, names)):
            yield (
                f"axis {axis!r} couples {names}, and {name!r} gives {list(thing)}; expected the "
                "same arguments for each of its values."
            )
    for name in names:
        if not _is_identifier(name):
            yield f"axis {axis!r} couples {name!r}, which is no identifier to name an argument by."
        if axes.arguments(sweep).count(name) > 1 or name in _OF_EVERY_CASE:
            yield f"axis {axis!r} couples {name!r}, which another axis gives as well; rename one."


def _is_identifier(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier()


def _of_names(workload: type[Workload]) -> Iterator[str]:
    for attribute in (
        "static",
        "donate",
        "transforms",
        "targets",
        "scenarios",
        "precisions",
        "depends_on",
    ):
        names: Any = getattr(workload, attribute)
        if (
            isinstance(names, str)
            or not isinstance(names, Sequence)
            or not all(isinstance(name, str) for name in names)
        ):
            yield (
                f"{attribute} is {names!r}; expected a sequence of names, such as "
                f"({str(names)!r},)."
            )
        if attribute in ("transforms", "targets", "scenarios") and not names:
            yield f"{attribute} is empty, so there would be no case."
        for name in names:
            if list(names).count(name) > 1:
                yield f"{attribute} names {name!r} twice."
    for target in filter(is_file, workload.targets):
        yield (
            f"targets names the file {target!r}, and a path holds on one machine only. Name 'gpu' "
            "here, and the file when it is measured: `harness run --target gpu:FILE.pbtxt`."
        )
    for attribute, choices in known_names.items():
        for name in getattr(workload, attribute):
            if name not in choices:
                like = nearest(name, list(choices))
                yield f"{attribute} names {name!r}.{like} There are: {', '.join(choices)}."
    if (calls := workload.first_calls) is not None and (type(calls) is not int or calls < 0):
        yield f"first_calls is {calls!r}; expected a number of processes, 0 for none, or None."
    if workload.vmap_batch < 1:
        yield f"vmap_batch is {workload.vmap_batch!r}; expected at least 1."


def _of_dependencies(workload: type[Workload]) -> Iterator[str]:
    project = project_folder(locate(workload)) if workload.depends_on else Path()
    for name in workload.depends_on:
        if name.startswith(ENV):
            variable = name.removeprefix(ENV)
            if not variable or "=" in variable:
                yield f"depends_on names {name!r}; expected env: and the name of a variable."
            if variable.startswith(("JAX_", "XLA_")):
                yield (
                    f"depends_on names {name!r}, and records hold JAX's and XLA's own variables "
                    "already: leave it out."
                )
            continue
        file = project / name
        if file.is_dir():
            yield f"depends_on names the folder {name!r}; expected its files, one by one."
        elif not file.is_file():
            yield (
                f"depends_on names {name!r}, and there is no file {file}. A path starts from the "
                "project's folder; env:NAME stands for an environment variable."
            )


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
