"""Make a case ready to be measured: its inputs, their shardings, and its jitted function."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax

from harness.declare import inputs, jitted, transforms
from harness.declare.jitted import Jitted
from harness.declare.workload import Case, Workload, make_inputs, static_arguments, where

if TYPE_CHECKING:
    from harness.targets.topologies import Topology

CPU_IS_IEEE = "XLA:CPU multiplies float32 in IEEE whatever is asked for"

_KEEP_DATA_BYTES = 64 * 2**20
"""Inputs up to this size stay in memory between passes; larger ones are made anew."""


@dataclass
class Prepared:
    """A case made ready to be measured: everything that does not depend on the pass."""

    workload: type[Workload]
    case: Case
    arguments: tuple[Any, ...]
    """Specs or arrays, after the transform."""
    abstract: tuple[Any, ...]
    """The same as `jax.ShapeDtypeStruct`, with shardings where the transform has them."""
    shardings: Any
    static: dict[str, Any]
    topology: Topology | None = None
    """What the case is compiled for without being run; None where it is run."""
    own: Jitted | None = None
    """The user's own jitted object, where that is what is measured."""
    turns: dict[str, int] = field(default_factory=dict)
    """Extra work by stage; see `injection`. A stage that is not named has none."""
    _data: tuple[Any, ...] | None = field(default=None, repr=False)
    _jaxpr: Callable[[], Any] = field(default=lambda: None, repr=False)
    """The jaxpr of the last pass, if it is still alive: nothing of ours keeps it so."""

    @property
    def is_pmap(self) -> bool:
        """Whether `jax.pmap` stands in for `jax.jit`."""
        return self.case.transform == "pmap"

    @property
    def keywords(self) -> dict[str, Any]:
        """The static arguments as the wrapped function takes them: `jax.pmap` gets them bound."""
        return {} if self.is_pmap else self.static

    @property
    def donated_positions(self) -> tuple[int, ...]:
        """Which of the arguments are donated."""
        names = list(inspect.signature(self.workload.function).parameters)[: len(self.arguments)]
        return tuple(i for i, name in enumerate(names) if name in self.workload.donate)

    def was_given(self, jaxpr: Any) -> bool:
        """Tell whether the last pass got this very jaxpr, and remember it for the next."""
        before, self._jaxpr = self._jaxpr(), weakref.ref(jaxpr)
        return jaxpr is before

    def data(self, compiled: Any) -> tuple[Any, ...]:
        """Return the arguments as arrays on the devices that the program wants them on.

        Where nothing is compiled yet, they are where a user has them.
        """
        if self._data is not None:
            return self._data
        filled = inputs.fill(self.arguments)
        if self.is_pmap and compiled is not None:
            filled = jax.device_put(filled, compiled.input_shardings[0])
        elif self.shardings is not None:
            filled = jax.tree_util.tree_map(_put, filled, self.shardings)
        else:
            filled = jax.tree_util.tree_map(_put, filled)
        data: tuple[Any, ...] = jax.block_until_ready(filled)
        if nbytes(data) <= _KEEP_DATA_BYTES:
            self._data = data
        return data

    def donated(self, compiled: Any) -> list[bool]:
        """Return for each leaf of the arguments whether its buffer is donated."""
        told = [one.donated for one in jax.tree_util.tree_leaves(compiled.args_info)]
        count = len(jax.tree_util.tree_leaves(self.abstract))
        # A library that takes arguments apart gives no leaf its place.
        return told if len(told) == count else [any(told)] * count


def _put(leaf: Any, sharding: Any = None) -> Any:
    """Put an array on its device; without a sharding uncommitted, as a user's arrays are."""
    return jax.device_put(leaf, sharding) if inputs.is_array(leaf) else leaf


def nbytes(tree: Any) -> int:
    """Return the bytes of a tree's arrays."""
    return sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree_util.tree_leaves(tree))


def is_there(tree: Any) -> bool:
    """Return whether all arrays of a tree are computed, as far as they say (keys do not)."""
    known = [leaf for leaf in jax.tree_util.tree_leaves(tree) if hasattr(leaf, "is_ready")]
    return bool(known) and all(leaf.is_ready() for leaf in known)


def prepare(
    workload: type[Workload],
    case: Case,
    topology: Topology | None = None,
    *,
    traces: bool = True,
) -> Prepared:
    """Make a case ready to be measured; with a `topology` it is compiled for that, and not run.

    A function that is jitted already may be traced to see whether the case can be measured;
    without `traces` it is not.

    Raises:
        WorkloadError: the case is declared wrongly.
        NotApplicable: it cannot be measured here, which is no fault.
    """
    if case.transform == "pmap" and not hasattr(jax, "pmap"):
        raise transforms.NotApplicable(f"jax {jax.__version__} has no jax.pmap")
    if case.target == "cpu" and case.precision not in ("", "ieee"):
        raise transforms.NotApplicable(CPU_IS_IEEE)
    if case.transform == "pmap" and topology is not None:
        raise transforms.NotApplicable(
            f"jax.pmap compiles for devices that are there, and there is no {topology.target} here"
        )
    own = jitted.find(workload.function)
    arguments = transforms.adapt_inputs(workload, case, make_inputs(workload, case))
    if own is not None and not own.is_jax:
        abstract = arguments = inputs.fill(arguments)
    else:
        abstract = inputs.abstract(arguments, f"{where(workload)}, {case.id}", own is not None)
    shardings = transforms.shardings(case, abstract, topology.several if topology else None)
    if shardings is None and topology is not None:
        shardings = jax.tree_util.tree_map(lambda _: topology.one, abstract)
    if shardings is not None:
        abstract = jax.tree_util.tree_map(_placed, abstract, shardings)
    static = static_arguments(workload, case)
    if own is not None and (case.precision or case.transform not in ("forward", "sharded")):
        if traces:
            _check_transform(own, case, abstract, static)
        own = None
    return Prepared(workload, case, arguments, abstract, shardings, static, topology, own)


def _placed(leaf: Any, sharding: Any) -> Any:
    if not hasattr(leaf, "shape"):
        return leaf
    weak = getattr(leaf, "weak_type", False)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=weak)


def lowered_of(made: Any) -> Any:
    """Return the `jax.stages.Lowered` that another library's may hold; JAX's own are themselves."""
    inside = [made, *getattr(made, "__dict__", {}).values()]
    return next((one for one in inside if isinstance(one, jax.stages.Lowered)), made)


def _check_transform(own: Jitted, case: Case, abstract: Any, static: dict[str, Any]) -> None:
    """Raise NotApplicable where a transform of a jitted function would lose what it was given."""
    make = own.trace if own.is_jax else own.lower
    made = lowered_of(make(*abstract, **static))
    if any(one.donated for one in jax.tree_util.tree_leaves(made.args_info)):
        how = case.transform if case.transform != "forward" else f"precision={case.precision}"
        raise transforms.NotApplicable(
            f"the function is jitted and donates arguments, which {how} of it would lose: measure "
            "it as it is, or name the function that it was made of"
        )


def wrap(prepared: Prepared) -> Any:
    """Return a new jitted (or pmapped) function that shares no cache with an earlier one.

    Where the user has jitted it, that object itself.
    """
    if prepared.own is not None:
        return prepared.own  # `jax.clear_caches()` is what makes it new
    function = transforms.transformed(prepared.workload, prepared.case)
    if prepared.is_pmap:
        fixed = functools.wraps(function)(functools.partial(function, **prepared.static))
        return jax.pmap(fixed, donate_argnums=prepared.donated_positions)
    placed: dict[str, Any] = {}
    if prepared.topology is not None and not jax.tree_util.tree_leaves(prepared.abstract):
        placed["out_shardings"] = prepared.topology.one  # no input says what is compiled for
    return jax.jit(
        function,
        static_argnames=tuple(prepared.workload.static),
        donate_argnames=tuple(prepared.workload.donate),
        **placed,
    )


def supply(prepared: Prepared, compiled: Any) -> Iterator[tuple[Any, ...]]:
    """Yield arguments for one call after another: the same, with fresh buffers where donated."""
    data = prepared.data(compiled)
    donated = prepared.donated(compiled)
    if not any(donated):
        while True:
            yield data
    leaves, structure = jax.tree_util.tree_flatten(data)
    while True:
        fresh = [
            leaf.copy() if one and inputs.is_array(leaf) else leaf
            for leaf, one in zip(leaves, donated, strict=True)
        ]
        yield jax.block_until_ready(jax.tree_util.tree_unflatten(structure, fresh))
