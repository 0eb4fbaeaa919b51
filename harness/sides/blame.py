"""Who is wrong, where a result is: held against a float64 reference made of either side in turn.

Only what was computed is said. What each side declares is evaluated in float64 on the same inputs:
where these references differ, the sides are different functions; where they agree, it is a side's
arithmetic in its own dtype that is off.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from harness.declare import transforms
from harness.declare.workload import Case, Workload, static_arguments
from harness.sides.equivalence import Agreement, reference_of, upcast
from harness.sides.namespace import namespace

WRONG_VALUES = "wrong values: "

Judge = Callable[[Any, Any], Agreement]
"""Holds a result against a reference."""


def blame(
    workload: type[Workload],
    case: Case,
    data: tuple[Any, ...],
    side: str,
    result: Any,
    judge: Judge,
) -> str:
    """Return what is wrong with the values of a result, "" where that cannot be told.

    `data` are the inputs and `result` what `side` made of them, as NumPy arrays; `judge` has the
    gates of the case.
    """
    standard = reference_of(workload, case, data)
    declared = "baseline" if workload.reference is None else "reference"
    references = {"function": _tried(_in_float64, workload, case, data)}
    if declared == "reference" and workload.baseline is not None:
        references["baseline"] = _tried(reference_of, workload, case, data, workload.baseline)
    judged = {
        name: judge(_as(result, found), standard)
        for name, found in references.items()
        if found is not None
    }
    if not judged:
        return ""
    others = [name for name, found in judged.items() if found.reasons]
    if others:
        return _different(declared, others, judged)
    names = " and ".join([*judged, declared])
    said = (
        f"{WRONG_VALUES}{side} differs from the float64 references of {names}, which agree, "
        f"{_by(judge(result, standard))}"
    )
    other, found = _other_side(workload, case, data, side)
    if found is not None and not judge(found, standard).reasons:
        said += f"; {other} agrees with them"
    return said


def _tried(make: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `make` gives; None where it raises: what is measured need not run in float64."""
    try:
        return make(*arguments)
    except Exception:  # whatever the user's code, or JAX, raises
        return None


def _different(declared: str, others: list[str], judged: dict[str, Agreement]) -> str:
    by = " and ".join(f"{name} from {declared} {_by(judged[name])}" for name in others)
    said = f"{WRONG_VALUES}the float64 references differ, {by}"
    for name in judged:
        said += "" if name in others else f"; {name} agrees with {declared}"
    return f"{said}: another function, or one computes in less than its inputs' dtype"


def _by(found: Agreement) -> str:
    if found.error is None or found.gate is None or found.error <= found.gate:
        return f"({'; '.join(found.reasons)})"
    return f"by {found.error:.2g} (gate {found.gate:g})"


def _other_side(
    workload: type[Workload], case: Case, data: tuple[Any, ...], side: str
) -> tuple[str, Any]:
    """Return the plainest other side of a CPU and what it computes; None where it cannot."""
    if case.target != "cpu" or (side == "xla" and workload.baseline is None):
        return "", None
    if side == "xla":
        return "numpy", _tried(_in_numpy, workload, case, data)
    return "xla", _tried(_by_xla, workload, case, data)


def _in_float64(workload: type[Workload], case: Case, data: tuple[Any, ...]) -> Any:
    """Return what the workload's function gives in float64, as NumPy arrays."""
    with jax.enable_x64(True):
        return _by_xla(workload, case, upcast(data))


def _by_xla(workload: type[Workload], case: Case, data: tuple[Any, ...]) -> Any:
    function = partial(transforms.transformed(workload, case), **static_arguments(workload, case))
    return jax.device_get(jax.jit(function)(*data))


def _in_numpy(workload: type[Workload], case: Case, data: tuple[Any, ...]) -> Any:
    assert workload.baseline is not None
    copied = jax.tree_util.tree_map(np.copy, data)  # a baseline may write into its inputs
    static = static_arguments(workload, case)
    found = workload.baseline(namespace("numpy"), *copied, **static)
    return jax.tree_util.tree_map(np.asarray, found)


def _as(result: Any, reference: Any) -> Any:
    """Return a reference in the dtypes of a result, to be judged like one."""
    wanted, _ = jax.tree_util.tree_flatten(result)
    leaves, structure = jax.tree_util.tree_flatten(reference)
    if len(leaves) != len(wanted):
        return reference
    cast = [np.asarray(leaf).astype(like.dtype) for leaf, like in zip(leaves, wanted, strict=True)]
    return jax.tree_util.tree_unflatten(structure, cast)
