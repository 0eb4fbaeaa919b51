"""Check how a workload is declared, before anything is measured: what is wrong, and where."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.declare import axes, signatures
from harness.declare.code import ENV, project_folder
from harness.declare.location import locate
from harness.declare.names import RESERVED_AXES, known_names
from harness.declare.workload import PRECISIONS, TRANSFORMS, Workload, WorkloadError, name_of, where
from harness.errors import nearest
from harness.targets.described_gpu import is_file
from harness.targets.registry import TARGETS

known_names.update(transforms=TRANSFORMS, targets=TARGETS, precisions=PRECISIONS)

_OF_EVERY_CASE = ("self", "precision", "transform", "target")
"""What `skip` gets besides the axes."""


def check(workload: type[Workload]) -> None:
    """Raise :class:`WorkloadError` if the declaration is wrong; nothing is called or traced."""
    if inspect.isabstract(workload):
        missing = ", ".join(sorted(workload.__abstractmethods__))
        raise WorkloadError(f"{where(workload)} does not define {missing}; a workload needs both.")
    for find in (_of_sweep, _of_names, _of_dependencies, signatures.problems):
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
        *("static", "donate", "transforms", "targets", "scenarios", "precisions"),
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
    for attribute, known in known_names.items():
        for name in getattr(workload, attribute):
            if name not in known:
                like = nearest(name, list(known))
                yield f"{attribute} names {name!r}.{like} There are: {', '.join(known)}."
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
