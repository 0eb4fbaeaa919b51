"""Is a result right, and else who is wrong: held against float64, before any time of it counts.

The reference is NumPy's, of the inputs as they were quantised to their dtype and then taken as
float64. Each side is judged against it, not against the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from harness.baselines.side import namespace
from harness.workload import transforms
from harness.workload.workload import Case, Workload, WorkloadError, static_arguments, where

GATES = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
"""The greatest relative L2 error that passes, by the coarsest dtype that takes part."""

PRECISION_GATES = {"tf32": 1e-3, "bf16": 1e-2}
"""The same for float32 products that are computed in less."""

WRONG_VALUES = "wrong values: "

_REAL_OF = {"complex64": "float32", "complex128": "float64"}


@dataclass
class Agreement:
    """What a result was found to be."""

    error: float | None = None
    """||y - r|| / ||r||, the greatest of all outputs that are no integers."""
    gate: float | None = None
    dtypes: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


def upcast(tree: Any) -> Any:
    """Return NumPy arrays with floats as float64 and complex numbers as complex128."""

    def one(leaf: Any) -> Any:
        leaf = np.asarray(leaf)
        if not is_inexact(leaf.dtype):
            return leaf.copy()
        return leaf.astype(np.complex128 if leaf.dtype.kind == "c" else np.float64)

    return jax.tree_util.tree_map(one, tree)


def is_inexact(dtype: Any) -> bool:
    """Tell whether a dtype is of floats or complex numbers; those of ml_dtypes included."""
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float"))


def reference_of(
    workload: type[Workload],
    case: Case,
    arguments: tuple[Any, ...],
    function: Callable[..., Any] | None = None,
) -> Any:
    """Return what `function` gives in float64: the workload's `reference`, else its `baseline`."""
    function = function or workload.reference or workload.baseline
    if function is None:
        raise WorkloadError(f"{where(workload)} has neither reference nor baseline.")
    return _in_numpy(function, workload, case, upcast(arguments))


def _in_numpy(
    function: Callable[..., Any], workload: type[Workload], case: Case, arguments: Any
) -> Any:
    with np.errstate(all="ignore"):
        result = function(namespace("numpy"), *arguments, **static_arguments(workload, case))
    return jax.tree_util.tree_map(np.asarray, result)


def gate_of(dtypes: Sequence[Any], precision: str) -> float:
    """Return the greatest error that passes where `dtypes` take part in a computation."""
    names = [_REAL_OF.get(dtype.name, dtype.name) for dtype in dtypes if is_inexact(dtype)]
    gates = [GATES.get(name, GATES["bfloat16"]) for name in names]
    if "float32" in names and precision in PRECISION_GATES:
        gates.append(PRECISION_GATES[precision])
    return max(gates, default=0.0)


def judge(
    result: Any, reference: Any, declared: Any, inputs: Any, precision: str, has_products: bool
) -> Agreement:
    """Hold a result against the reference, and against what the JAX function declares.

    `result`, `reference` and `declared` are pytrees of NumPy arrays, and the last of
    `jax.ShapeDtypeStruct`; the dtypes of `inputs` take part.
    """
    flatten = jax.tree_util.tree_flatten
    agreement = Agreement()
    wanted, structure = flatten(declared)
    for what, tree in (("the result", result), ("the reference", reference)):
        if str(flatten(tree)[1]) != str(structure):
            agreement.reasons.append(
                f"wrong pytree: {what} is {flatten(tree)[1]}, the JAX function returns {structure}"
            )
    leaves = flatten(result)[0]
    agreement.dtypes = [str(leaf.dtype) for leaf in leaves]
    if agreement.reasons:
        return agreement
    taking_part = [leaf.dtype for leaf in jax.tree_util.tree_leaves(inputs)]
    expected = flatten(reference)[0]
    for index, (y, r, spec) in enumerate(zip(leaves, expected, wanted, strict=True)):
        gate = gate_of([*taking_part, np.dtype(spec.dtype)], precision)
        _judge_leaf(agreement, f"output {index}", y, r, spec, gate)
    least, most = GATES["float32"], PRECISION_GATES["tf32"]
    like_tf32 = agreement.gate == least < (agreement.error or 0.0) <= most
    if has_products and precision in ("", "ieee") and like_tf32:
        agreement.labels.append("TF32 detected")
    return agreement


def _judge_leaf(agreement: Agreement, name: str, y: Any, r: Any, spec: Any, gate: float) -> None:
    dtype = np.dtype(spec.dtype)
    if y.shape != spec.shape or r.shape != spec.shape:
        agreement.reasons.append(
            f"wrong shape: {name} is {y.shape}, the reference {r.shape}, the JAX function "
            f"declares {spec.shape}"
        )
        return
    if y.dtype != dtype:
        agreement.reasons.append(
            f"wrong dtype: {name} is {y.dtype}, the JAX function declares {dtype}"
        )
    if not is_inexact(dtype):
        if not np.array_equal(y, r):
            agreement.reasons.append(f"{WRONG_VALUES}{name} is not exactly the reference's")
        return
    with np.errstate(all="ignore"):
        rounded = r.astype(dtype)  # what the reference is where the dtype ends: infinity
    wide = np.complex128 if dtype.kind == "c" else np.float64
    y, rounded, r = y.astype(wide), rounded.astype(wide), r.astype(wide)
    for what, mask in (("NaN", np.isnan), ("infinity", np.isinf)):
        if not np.array_equal(mask(y), mask(rounded)):
            agreement.reasons.append(
                f"{what} in other places: {name} and the reference differ in them"
            )
            return
    finite = np.isfinite(rounded)
    error = _relative(y[finite], r[finite])
    agreement.error = max(error, agreement.error or 0.0)
    agreement.gate = max(gate, agreement.gate or 0.0)
    if error > gate:
        agreement.reasons.append(
            f"{WRONG_VALUES}the error of {name} is {error:.2g}, more than the gate {gate:g}"
        )


def _relative(y: Any, r: Any) -> float:
    scale = float(np.linalg.norm(r))
    distance = float(np.linalg.norm(y - r))
    if scale:
        return distance / scale
    return 0.0 if distance == 0 else float("inf")


def blame(
    workload: type[Workload],
    case: Case,
    data: tuple[Any, ...],
    side: str,
    result: Any,
    judge: Callable[[Any, Any], Agreement],
) -> str:
    """Return what is wrong with the values of a result, "" where that cannot be told.

    Only what was computed is said. What each side declares is evaluated in float64 on the same
    inputs: where these references differ, the sides are different functions; where they agree, it
    is a side's arithmetic in its own dtype that is off.

    `data` are the inputs and `result` what `side` made of them, as NumPy arrays; `judge` has the
    gates of the case.
    """
    standard = reference_of(workload, case, data)
    declared = "baseline" if workload.reference is None else "reference"
    references = {"function": _tried(_in_float64, workload, case, data)}
    if declared == "reference" and workload.baseline is not None:
        references["baseline"] = _tried(reference_of, workload, case, data, workload.baseline)
    judged = {
        name: judge(_as(result, other_result), standard)
        for name, other_result in references.items()
        if other_result is not None
    }
    if not judged:
        return ""
    others = [name for name, other_result in judged.items() if other_result.reasons]
    if others:
        return _different(declared, others, judged)
    names = " and ".join([*judged, declared])
    text = (
        f"{WRONG_VALUES}{side} differs from the float64 references of {names}, which agree, "
        f"{_by(judge(result, standard))}"
    )
    other, other_result = _other_side(workload, case, data, side)
    if other_result is not None and not judge(other_result, standard).reasons:
        text += f"; {other} agrees with them"
    return text


def _tried(make: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `make` gives; None where it raises: what is measured need not run in float64."""
    try:
        return make(*arguments)
    except Exception:  # whatever the user's code, or JAX, raises
        return None


def _different(declared: str, others: list[str], judged: dict[str, Agreement]) -> str:
    by = " and ".join(f"{name} from {declared} {_by(judged[name])}" for name in others)
    text = f"{WRONG_VALUES}the float64 references differ, {by}"
    for name in judged:
        text += "" if name in others else f"; {name} agrees with {declared}"
    return f"{text}: another function, or one computes in less than its inputs' dtype"


def _by(agreement: Agreement) -> str:
    if agreement.error is None or agreement.gate is None or agreement.error <= agreement.gate:
        return f"({'; '.join(agreement.reasons)})"
    return f"by {agreement.error:.2g} (gate {agreement.gate:g})"


def _other_side(
    workload: type[Workload], case: Case, data: tuple[Any, ...], side: str
) -> tuple[str, Any]:
    """Return the plainest other side of a CPU and what it computes; None where it cannot."""
    if case.target != "cpu":
        return "", None
    if side != "xla":
        return "xla", _tried(_by_xla, workload, case, data)
    if workload.baseline is None:
        return "", None
    copied = jax.tree_util.tree_map(np.copy, data)  # a baseline may write into its inputs
    return "numpy", _tried(_in_numpy, workload.baseline, workload, case, copied)


def _in_float64(workload: type[Workload], case: Case, data: tuple[Any, ...]) -> Any:
    """Return what the workload's function gives in float64, as NumPy arrays."""
    with jax.enable_x64(True):
        return _by_xla(workload, case, upcast(data))


def _by_xla(workload: type[Workload], case: Case, data: tuple[Any, ...]) -> Any:
    function = partial(transforms.transformed(workload, case), **static_arguments(workload, case))
    return jax.device_get(jax.jit(function)(*data))


def _as(result: Any, reference: Any) -> Any:
    """Return a reference in the dtypes of a result, to be judged like one."""
    wanted, _ = jax.tree_util.tree_flatten(result)
    leaves, structure = jax.tree_util.tree_flatten(reference)
    if len(leaves) != len(wanted):
        return reference
    cast = [np.asarray(leaf).astype(like.dtype) for leaf, like in zip(leaves, wanted, strict=True)]
    return jax.tree_util.tree_unflatten(structure, cast)
