"""What the values of an axis stand for: themselves, an object that has a name, or coupled values.

A list holds plain values. A mapping holds plain names, and what each of them stands for: records,
frames, asv and `--case` have the name; `inputs`, `function` and `skip` get the thing. A thing that
is itself a mapping couples several arguments: `{"S": {"N": 30, "TSTEPS": 2}}` gives `N` and
`TSTEPS`, and the axis as the name.

Tables of names are here, because each room adds its own to them without importing what checks them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

Plain = str | int | float | bool | tuple[Any, ...]

Axis = Sequence[Plain] | Mapping[Any, Any]
"""The values of an axis, or their names with what they stand for."""


def coupled(values: Any) -> list[str]:
    """Return the arguments that an axis gives besides itself."""
    things = list(values.values()) if isinstance(values, Mapping) else []
    return list(things[0]) if things and isinstance(things[0], Mapping) else []


def arguments(sweep: Mapping[str, Axis]) -> list[str]:
    """Return the names of all arguments that a sweep gives."""
    return [name for axis, values in sweep.items() for name in (axis, *coupled(values))]


def given(sweep: Mapping[str, Axis], axes: Mapping[str, Plain]) -> dict[str, Any]:
    """Return the arguments that the axes of a case give, each with what its value stands for."""
    arguments: dict[str, Any] = {}
    for axis, value in axes.items():
        values = sweep.get(axis)
        thing = values[value] if isinstance(values, Mapping) else value
        if isinstance(thing, Mapping):
            arguments |= {axis: value, **thing}
        else:
            arguments[axis] = thing
    return arguments


def shown(value: object) -> str:
    """Return a value as people read it; a text that reads as another value is quoted: `'4'`."""
    if isinstance(value, str):
        try:
            ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
        return repr(value)
    return str(value)


def is_plain(value: object) -> bool:
    """Tell whether a value can stand in a record as it is, alike in every process."""
    if type(value) is tuple:
        return all(map(is_plain, value))
    if type(value) is float:
        return math.isfinite(value)
    return type(value) in (str, int, bool)


RESERVED_AXES = set(
    """
    machine commit commit_date started_at env xla_flags env_vars python jax jaxlib workload
    version target transform
    scenario stage unit value calibrated low high least p10 p50 p90 p50_low
    p50_high n_calls programs programs_s n_processes n_samples interval_level samples status
    reason fingerprint
    effort dirty calibrated_samples entry_bytes precision backend threads comparable labels case
    self n_forked
    """.split()  # noqa: SIM905 - one name per line would say no more
)
"""Names an axis cannot have: columns of the frame. Rooms above add theirs."""

known_names: dict[str, Collection[str]] = {}
"""Attributes of a workload to the names they may hold; each is added by who knows them."""
