"""What a user's own jitted object says of its arguments: static, donated, and on which devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from harness.jaxhooks.jax_names import options_of
from harness.workload import inputs
from harness.workload.jitted import Jitted


def jax_stage(made: Any, kind: type) -> Any:
    """Return the `jax.stages` object that another library's may hold; JAX's own are themselves."""
    slots = [name for cls in type(made).__mro__ for name in getattr(cls, "__slots__", ())]
    held = (getattr(made, name, None) for name in (*slots, *getattr(made, "__dict__", ())))
    return next((one for one in (made, *held) if isinstance(one, kind)), made)


def by_leaf(
    own: Jitted | None, abstract: Any, of_arguments: list[Any], otherwise: Any
) -> list[Any]:
    """Give what was found of a program's arguments to their leaves; static ones are none of them.

    A library that takes arguments apart gives no leaf its place.
    """
    leaves = jax.tree_util.tree_leaves(abstract)
    dynamic = [hasattr(leaf, "shape") for leaf in leaves]
    if own is None or own.takes_shapes:
        if len(of_arguments) == len(leaves):
            return of_arguments
        if len(of_arguments) == sum(dynamic):
            rest = iter(of_arguments)
            return [next(rest) if one else otherwise for one in dynamic]
    return [otherwise] * len(leaves)


def placed(leaf: Any, sharding: Any) -> Any:
    """Return what a leaf is traced as where it is spread over devices."""
    if sharding is None or not hasattr(leaf, "shape"):
        return leaf
    if inputs.is_array(leaf):
        return jax.device_put(leaf, sharding)
    weak = getattr(leaf, "weak_type", False)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=weak)


def spread(own: Jitted, abstract: Any, shardings: Any, static: dict[str, Any]) -> Any:
    """Return the arguments of a jitted object, spread as it says itself, else as given.

    Its user places them so, and it refuses any other place.
    """
    leaves, structure = jax.tree_util.tree_flatten(abstract)
    given = jax.tree_util.tree_leaves(shardings) or [None] * len(leaves)
    options = _options(own, abstract, static) if len(jax.devices()) > 1 else {}
    if options:
        jax.clear_caches()  # a first call may be next
    several = [
        one if isinstance(one, jax.sharding.Sharding) and len(one.device_set) > 1 else None
        for one in options.get("in_shardings", ())
    ]
    own_ones = by_leaf(own, abstract, several, None)
    wanted = [one or other for one, other in zip(own_ones, given, strict=True)]
    return jax.tree_util.tree_unflatten(structure, map(placed, leaves, wanted))


def lost_in(transform: str, own: Jitted, arguments: Any, static: dict[str, Any]) -> str:
    """Return why a transform of a jitted object would be another program's, empty if it is not."""
    lost = ""
    if own.takes_shapes:
        abstract = inputs.abstract(arguments, "", any_leaf=True)
        options = _options(own, abstract, static)
        count = len(jax.tree_util.tree_leaves(abstract))
        if options.get("compiler_options_kvs"):
            lost = "has compiler options"
        elif len(options.get("donated_invars", [None] * count)) < count:
            lost = "takes some of its inputs as static"
        donated = any(options.get("donated_invars", ()))
    else:
        made = own.lower(*inputs.fill(arguments), **static)
        infos = jax.tree_util.tree_leaves(jax_stage(made, jax.stages.Lowered).args_info)
        donated = any(one.donated for one in infos)
    if donated:
        lost = "donates arguments"
    return lost and (
        f"the function is jitted and {lost}, which {transform} of it would lose: measure it as it "
        "is, or name the function that it was made of"
    )


def _options(own: Jitted, abstract: Any, static: dict[str, Any]) -> Mapping[str, Any]:
    """Return what a jitted object was jitted with; nothing of one that has no trace step."""
    if own.trace is None:
        return {}
    return options_of(jax_stage(own.trace(*abstract, **static), jax.stages.Traced))
