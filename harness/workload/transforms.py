"""What is done to a workload's function before it is measured: the transform axis."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from harness.workload.inputs import with_leading
from harness.workload.jitted import by_keyword
from harness.workload.workload import PRECISIONS, Case, Workload


class NotApplicable(Exception):
    """A case cannot be measured here, which is no fault; the text is the reason."""


def fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a new function object with the same code and name.

    JAX's in-memory caches are keyed on the function object, so a new one traces anew; the name is
    kept because it is part of the module that XLA compiles.
    """
    if isinstance(function, types.FunctionType):
        twin = types.FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        twin.__kwdefaults__ = function.__kwdefaults__
        return functools.update_wrapper(twin, function)

    # A jitted function, a partial or a callable object has no code of its own to copy.
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def transformed(
    workload: type[Workload], case: Case, names: tuple[str, ...] = ()
) -> Callable[..., Any]:
    """Return a fresh function object: the workload's own, under the case's transform.

    It takes by position what `names` says that the workload's takes by keyword.
    """
    function = by_keyword(fresh(workload.function), names)
    if case.precision:
        function = _in_precision(function, PRECISIONS[case.precision])
    if case.transform == "gradient":
        return _gradient(function)
    if case.transform == "vmap":
        return _vmap(function, tuple(workload.static))
    return function


def _in_precision(function: Callable[..., Any], precision: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def precise(*args: Any, **kwargs: Any) -> Any:
        with jax.default_matmul_precision(precision):
            return function(*args, **kwargs)

    return precise


def _vmap(function: Callable[..., Any], static: tuple[str, ...]) -> Callable[..., Any]:
    @functools.wraps(function)
    def batched(*args: Any, **kwargs: Any) -> Any:
        fixed = {name: kwargs.pop(name) for name in static if name in kwargs}
        return jax.vmap(functools.partial(function, **fixed))(*args, **kwargs)

    return batched


def _gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return value_and_grad with respect to every inexact leaf of the inputs.

    What is differentiated is a scalar output itself, else the mean over all elements of the
    output's inexact leaves (their real parts).
    """

    @functools.wraps(function)
    def value_and_gradient(*args: Any, **static: Any) -> Any:
        leaves, structure = jax.tree_util.tree_flatten(args)
        differentiable = [jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in leaves]

        def loss(chosen: list[Any]) -> Any:
            remaining = iter(chosen)
            full = [
                next(remaining) if wanted else leaf
                for leaf, wanted in zip(leaves, differentiable, strict=True)
            ]
            return _scalar(function(*jax.tree_util.tree_unflatten(structure, full), **static))

        return jax.value_and_grad(loss)(
            [leaf for leaf, wanted in zip(leaves, differentiable, strict=True) if wanted]
        )

    return value_and_gradient


def _scalar(output: Any) -> Any:
    leaves = [
        jnp.real(leaf)
        for leaf in map(jnp.asarray, jax.tree_util.tree_leaves(output))  # a float may be a leaf
        if jnp.issubdtype(leaf.dtype, jnp.inexact)
    ]
    if not leaves:
        raise TypeError(
            "the transform 'gradient' needs an output with floats; this function returns none"
        )
    if len(leaves) == 1 and leaves[0].ndim == 0:
        return leaves[0]
    return sum(jnp.sum(leaf) for leaf in leaves) / sum(leaf.size for leaf in leaves)


def adapt_inputs(workload: type[Workload], case: Case, arguments: tuple[Any, ...]) -> Any:
    """Return the inputs as the case's transform wants them: with a batch or device axis, or not."""
    if case.transform == "vmap":
        return with_leading(arguments, workload.vmap_batch)
    if case.transform == "pmap":
        return with_leading(arguments, jax.local_device_count())
    return arguments


def shardings(case: Case, abstract: Any, devices: Sequence[Any] | None = None) -> Any:
    """Return a sharding per input leaf: over all devices along its leading axis, or None.

    `devices` are JAX's unless given. A leaf that is spread already stays so; scalars are
    replicated. Raises :class:`NotApplicable` where a leading axis cannot be divided.
    """
    if case.transform != "sharded":
        return None
    if devices is None:
        devices = jax.devices()
    mesh = Mesh(devices, ("devices",))

    def one(path: Any, leaf: Any) -> Sharding:
        own = getattr(leaf, "sharding", None)
        if own is not None and len(own.device_set) > 1:
            return own  # type: ignore[no-any-return]  # the workload says so
        if not getattr(leaf, "shape", ()):
            return NamedSharding(mesh, PartitionSpec())
        if leaf.shape[0] % len(devices):
            raise NotApplicable(
                f"the leading axis of the input at {jax.tree_util.keystr(path)} has "
                f"{leaf.shape[0]} elements, which {len(devices)} devices cannot share evenly"
            )
        return NamedSharding(mesh, PartitionSpec("devices"))

    return jax.tree_util.tree_map_with_path(one, abstract)
