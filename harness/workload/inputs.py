"""Turn a workload's specs into abstract values to trace with, and into data to execute on."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from harness.workload.workload import Spec, WorkloadError

DATA_SEED = 20200229
"""Seeds the data of every process alike, so that data-dependent programs do the same work."""

DEFAULT_HIGH = 100
"""Integers of a spec without bounds are from 0 to below this, or to what their dtype holds."""

_KEY_IMPLEMENTATIONS = {"fry": "threefry2x32", "rbg": "rbg", "urbg": "unsafe_rbg"}


def _is_leaf(value: object) -> bool:
    return isinstance(value, Spec)


def is_array(value: object) -> bool:
    """Return whether a leaf is an array of NumPy's or JAX's."""
    return isinstance(value, np.ndarray | np.generic | jax.Array)


def abstract(tree: Any, place: str, any_leaf: bool = False) -> Any:
    """Return `tree` with every leaf as a `jax.ShapeDtypeStruct`.

    Python numbers stay: JAX traces them as scalars of a weak type. With `any_leaf`, so does what
    is no array, for a function that its user has jitted and that may take it as static.

    Raises:
        WorkloadError: a leaf is no spec and no array; `place` says where it was made.
    """

    def one(path: Any, leaf: Any) -> Any:
        where = f"{place}: the input at {jax.tree_util.keystr(path) or 'the top'}"
        if isinstance(leaf, Spec):
            return jax.ShapeDtypeStruct(leaf.shape, _dtype(leaf, where))
        if isinstance(leaf, jax.ShapeDtypeStruct):
            _canonical(leaf.dtype, where)
            return leaf
        if is_array(leaf):
            weak = getattr(leaf, "weak_type", False)  # `jnp.array(1.0)`; NumPy has none
            dtype = _canonical(leaf.dtype, where)
            spread = getattr(leaf, "sharding", None)
            if spread is not None and len(spread.device_set) == 1 and not _elsewhere(leaf):
                spread = None
            return jax.ShapeDtypeStruct(leaf.shape, dtype, weak_type=weak, sharding=spread)
        if any_leaf or isinstance(leaf, bool | int | float | complex):
            return leaf
        raise WorkloadError(
            f"{where} is {leaf!r} of type {type(leaf).__name__}; expected a pytree of "
            "harness.spec(shape, dtype), jax.ShapeDtypeStruct, arrays or Python numbers. A Python "
            "value that steers the function belongs into sweep and static; a tree with leaves that "
            "are no arrays into a function that is jitted with equinox.filter_jit."
        )

    return jax.tree_util.tree_map_with_path(one, tree, is_leaf=_is_leaf)


def _elsewhere(array: jax.Array) -> bool:
    """Return whether an array was put on a device of the kind in use that is not its first."""
    first, [device] = jax.devices()[0], array.devices()
    return array.committed and device.platform == first.platform and device != first


def _dtype(leaf: Spec, where: str) -> Any:
    if leaf.dtype == "key":
        return jax.eval_shape(lambda: jax.random.key(0)).dtype
    try:
        dtype = jax.numpy.dtype(leaf.dtype)
    except TypeError:
        raise WorkloadError(
            f"{where} has the dtype {leaf.dtype!r}; expected a name that NumPy or ml_dtypes knows, "
            "such as 'float32', 'bfloat16', 'int32', 'bool', 'complex64', or 'key'."
        ) from None
    return _canonical(dtype, where)


def _canonical(dtype: Any, where: str) -> Any:
    if jax.numpy.issubdtype(dtype, jax.dtypes.extended):
        return dtype
    allowed = jax.dtypes.canonicalize_dtype(dtype)
    if allowed != dtype:
        raise WorkloadError(
            f"{where} has the dtype {dtype}, which JAX would turn into {allowed}; set `x64 = True` "
            "in the workload to measure 64-bit types."
        )
    return dtype


def leaves_with_paths(tree: Any) -> list[tuple[Any, Any]]:
    """Return the leaves of `tree`, specs among them, with where they are."""
    return jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_leaf)[0]


def fill(tree: Any) -> Any:
    """Return `tree` with every spec as a NumPy array (or JAX key array) of seeded random data.

    Floats and complex numbers are standard normal, integers uniform over their range, booleans
    fair coins, keys split from one seed. Arrays pass through as they are.
    """
    leaves, structure = jax.tree_util.tree_flatten(tree, is_leaf=_is_leaf)
    filled = [_fill_leaf(leaf, index) for index, leaf in enumerate(leaves)]
    return jax.tree_util.tree_unflatten(structure, filled)


def data_sets(tree: Any, count: int) -> list[Any]:
    """Return `count` pytrees of NumPy arrays that share no memory, the first as :func:`fill` makes.

    In the others what is random is rolled: the same numbers in other places, made in the time of a
    copy. Arrays that a workload made itself keep their order, which may mean something.
    """
    first = fill(tree)
    leaves, structure = jax.tree_util.tree_flatten(tree, is_leaf=_is_leaf)
    filled = [np.array(leaf) for leaf in jax.tree_util.tree_leaves(first)]
    sets = []
    for number in range(count):
        rolled = [
            leaf.copy()
            if isinstance(given, np.ndarray | np.generic | jax.Array)
            # A part of the whole, so that every set starts somewhere else.
            else np.roll(leaf, number * (leaf.size // count + 1))
            for given, leaf in zip(leaves, filled, strict=True)
        ]
        sets.append(jax.tree_util.tree_unflatten(structure, rolled))
    return sets


def _fill_leaf(leaf: Any, index: int) -> Any:
    if not isinstance(leaf, Spec | jax.ShapeDtypeStruct):
        return leaf
    shape = tuple(leaf.shape)
    if isinstance(leaf, Spec) and leaf.dtype == "key":
        return _keys(shape, index, None)
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        short = str(leaf.dtype).removeprefix("key<").removesuffix(">")
        return _keys(shape, index, _KEY_IMPLEMENTATIONS.get(short, short))
    dtype = jax.numpy.dtype(leaf.dtype)
    rng = np.random.default_rng([DATA_SEED, index])
    low: Any = getattr(leaf, "low", None)
    high: Any = getattr(leaf, "high", None)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if jax.numpy.issubdtype(dtype, np.integer):
        # NumPy's own knows no integers of less than a byte.
        info = jax.numpy.iinfo(dtype)  # type: ignore[no-untyped-call]
        if low is not None and not info.min <= low < high <= info.max + 1:
            raise WorkloadError(
                f"a spec of {dtype} asks for integers from {low} to below {high}; expected low < "
                f"high within {info.min} and {info.max + 1}."
            )
        if low is None:
            low, high = 0, min(DEFAULT_HIGH, info.max + 1)
        return rng.integers(low, high, shape).astype(dtype)
    if jax.numpy.issubdtype(dtype, np.complexfloating):
        real, imaginary = rng.standard_normal((2, *shape))
        return (real + 1j * imaginary).astype(dtype)
    if low is not None:
        return rng.uniform(low, high, shape).astype(dtype)
    narrow = np.float64 if dtype == np.float64 else np.float32
    return np.asarray(rng.standard_normal(shape, dtype=narrow)).astype(dtype)


def _keys(shape: tuple[int, ...], index: int, implementation: str | None) -> Any:
    key = jax.random.key(DATA_SEED + index, impl=implementation)
    return jax.random.split(key, math.prod(shape)).reshape(shape) if shape else key


def with_leading(tree: Any, size: int) -> Any:
    """Return a pytree of specs or arrays with one more axis of `size` in front of every leaf."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, Spec):
            return Spec((size, *leaf.shape), leaf.dtype, leaf.low, leaf.high)
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct((size, *leaf.shape), leaf.dtype)
        if isinstance(leaf, jax.Array):  # keys are no NumPy arrays
            return jax.numpy.broadcast_to(leaf, (size, *leaf.shape))
        if isinstance(leaf, np.ndarray | np.generic):
            return np.broadcast_to(leaf, (size, *leaf.shape))
        if isinstance(leaf, bool | int | float | complex):
            raise WorkloadError(
                f"the input {leaf!r} is a Python number, which has no leading axis to map over: "
                "make it an array, or leave the transform out."
            )
        return leaf  # no input at all: `abstract` says so

    return jax.tree_util.tree_map(one, tree, is_leaf=_is_leaf)
