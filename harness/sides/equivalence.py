"""Is a result right: held against a float64 reference, before any time of it counts.

The reference is NumPy's, of the inputs as they were quantised to their dtype and then taken as
float64. Each side is judged against it, not against the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax  # pytrees only
import numpy as np

from harness.declare.workload import Case, Workload, WorkloadError, static_arguments, where
from harness.sides.namespace import namespace

GATES = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
"""The greatest relative L2 error that passes, by the coarsest dtype that takes part."""

PRECISION_GATES = {"tf32": 1e-3, "bf16": 1e-2}
"""The same for float32 products that are computed in less."""

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
    with np.errstate(all="ignore"):
        found = function(namespace("numpy"), *upcast(arguments), **static_arguments(workload, case))
    return jax.tree_util.tree_map(np.asarray, found)


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
    found = Agreement()
    wanted, structure = flatten(declared)
    for what, tree in (("the result", result), ("the reference", reference)):
        if str(flatten(tree)[1]) != str(structure):
            found.reasons.append(
                f"wrong pytree: {what} is {flatten(tree)[1]}, the JAX function returns {structure}"
            )
    leaves = flatten(result)[0]
    found.dtypes = [str(leaf.dtype) for leaf in leaves]
    if found.reasons:
        return found
    taking_part = [leaf.dtype for leaf in jax.tree_util.tree_leaves(inputs)]
    expected = flatten(reference)[0]
    for index, (y, r, spec) in enumerate(zip(leaves, expected, wanted, strict=True)):
        gate = gate_of([*taking_part, np.dtype(spec.dtype)], precision)
        _judge_leaf(found, f"output {index}", y, r, spec, gate)
    if has_products and precision in ("", "ieee") and _looks_like_tf32(found):
        found.labels.append("TF32 detected")
    return found


def _looks_like_tf32(found: Agreement) -> bool:
    return (
        found.error is not None
        and found.gate == GATES["float32"]
        and found.gate < found.error <= PRECISION_GATES["tf32"]
    )


def _judge_leaf(found: Agreement, name: str, y: Any, r: Any, spec: Any, gate: float) -> None:
    dtype = np.dtype(spec.dtype)
    if y.shape != spec.shape or r.shape != spec.shape:
        found.reasons.append(
            f"wrong shape: {name} is {y.shape}, the reference {r.shape}, the JAX function "
            f"declares {spec.shape}"
        )
        return
    if y.dtype != dtype:
        found.reasons.append(f"wrong dtype: {name} is {y.dtype}, the JAX function declares {dtype}")
    if not is_inexact(dtype):
        if not np.array_equal(y, r):
            found.reasons.append(f"wrong values: {name} is not exactly the reference's")
        return
    with np.errstate(all="ignore"):
        rounded = r.astype(dtype)  # what the reference is where the dtype ends: infinity
    wide = np.complex128 if dtype.kind == "c" else np.float64
    y, rounded, r = y.astype(wide), rounded.astype(wide), r.astype(wide)
    for what, mask in (("NaN", np.isnan), ("infinity", np.isinf)):
        if not np.array_equal(mask(y), mask(rounded)):
            found.reasons.append(f"{what} in other places: {name} and the reference differ in them")
            return
    finite = np.isfinite(rounded)
    error = _relative(y[finite], r[finite])
    found.error = max(error, found.error or 0.0)
    found.gate = max(gate, found.gate or 0.0)
    if error > gate:
        found.reasons.append(
            f"wrong values: the error of {name} is {error:.2g}, more than the gate {gate:g}"
        )


def _relative(y: Any, r: Any) -> float:
    scale = float(np.linalg.norm(r))
    distance = float(np.linalg.norm(y - r))
    if scale:
        return distance / scale
    return 0.0 if distance == 0 else float("inf")
