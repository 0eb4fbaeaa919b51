"""Make a case ready to be measured: its inputs, their shardings, and its jitted function."""

from __future__ import annotations

import functools
import hashlib
import inspect
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from harness.stages import own_options
from harness.workload import inputs, jitted, transforms
from harness.workload.jitted import Jitted
from harness.workload.workload import (
    Case,
    Workload,
    WorkloadError,
    make_arguments,
    static_arguments,
    where,
)

if TYPE_CHECKING:
    from harness.program.facts import Facts
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
    names: tuple[str, ...] = ()
    """By which the function takes the last of its arguments."""
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
        last = len(self.arguments) - len(self.names)
        names = list(inspect.signature(self.workload.function).parameters)[:last]
        taken = enumerate((*names, *self.names))
        return tuple(i for i, name in taken if name in self.workload.donate)

    def function(self) -> Callable[..., Any]:
        """Return a fresh function object: the workload's own, under the case's transform."""
        return transforms.transformed(self.workload, self.case, self.names)

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
        else:
            leaves, structure = jax.tree_util.tree_flatten(filled)
            wanted = jax.tree_util.tree_leaves(self.abstract)
            filled = jax.tree_util.tree_unflatten(structure, map(_put, leaves, wanted))
        data: tuple[Any, ...] = jax.block_until_ready(filled)
        if nbytes(data) <= _KEEP_DATA_BYTES:
            self._data = data
        return data

    @property
    def holds_data(self) -> bool:
        """Whether the arrays stay in memory between rounds: small ones do."""
        return self._data is not None

    def donated(self, compiled: Any) -> list[bool]:
        """Return for each leaf of the arguments whether its buffer is donated."""
        of_arguments = [one.donated for one in jax.tree_util.tree_leaves(compiled.args_info)]
        return own_options.by_leaf(self.own, self.abstract, of_arguments, any(of_arguments))

    def check_static(self, lowered: Any) -> None:
        """Raise WorkloadError where a jitted function traced what the workload calls static."""
        keywords = lowered.args_info[1] if self.own is not None and self.keywords else {}
        traced = sorted(set(keywords) & set(self.keywords))
        if traced:
            raise WorkloadError(
                f"{where(self.workload)}, {self.case.id}: static names {', '.join(traced)}, which "
                "function traces: jitted with both static_argnums and static_argnames, it takes "
                "keywords as static by the second alone. Name it there, or let `inputs` return "
                "its value at its place."
            )

    def check_aliases(self, donated: list[bool]) -> None:
        """Raise WorkloadError where an array is donated that is another argument as well."""
        places: dict[int, str] = {}
        paths = inputs.leaves_with_paths(self.arguments)
        for (path, leaf), given in sorted(zip(paths, donated, strict=True), key=lambda one: one[1]):
            place = jax.tree_util.keystr(path)
            if not isinstance(leaf, jax.Array):
                continue
            other = places.setdefault(id(leaf), place)
            if given and other != place:
                raise WorkloadError(
                    f"{where(self.workload)}, {self.case.id}: the inputs at {other} and {place} "
                    f"are one array, which is donated at {place}: a buffer that is given away "
                    "cannot be read again. Make a copy of it (jax.numpy.copy)."
                )


def _put(leaf: Any, abstract: Any) -> Any:
    """Put an array where it is traced for; else on its device, uncommitted as a user's arrays."""
    if not inputs.is_array(leaf):
        return leaf
    wanted = abstract.sharding if isinstance(abstract, jax.ShapeDtypeStruct) else None
    return jax.device_put(leaf, wanted)


def inputs_digest(prepared: Prepared, facts: Facts) -> str:
    """Return a digest of the values that a program gets; "" where they do not determine its work.

    That is where it calls back to the host.
    """
    if any("callback" in target for target in facts.custom_call_targets):
        return ""
    digest = hashlib.sha256()
    for path, leaf in inputs.leaves_with_paths(prepared.data(None)):
        if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended):
            leaf = jax.random.key_data(leaf)
        digest.update(jax.tree_util.keystr(path).encode())
        if inputs.is_array(leaf):
            values = np.ascontiguousarray(leaf)
            digest.update(f"{values.dtype}{values.shape}".encode())
            digest.update(values.reshape(-1).view(np.uint8).data)
        else:
            digest.update(repr(leaf).encode())
    return digest.hexdigest()[:16]


def nbytes(tree: Any) -> int:
    """Return the bytes of a tree's arrays."""
    return sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree_util.tree_leaves(tree))


def cpu_devices(tree: Any) -> int:
    """Return how many devices of a CPU a tree's arrays lie on."""
    leaves = [leaf for leaf in jax.tree_util.tree_leaves(tree) if isinstance(leaf, jax.Array)]
    devices = {device for leaf in leaves for device in leaf.devices()}
    return sum(device.platform == "cpu" for device in devices)


def is_there(tree: Any) -> bool:
    """Return whether all arrays of a tree are computed, as far as they say (keys do not)."""
    arrays = [leaf for leaf in jax.tree_util.tree_leaves(tree) if hasattr(leaf, "is_ready")]
    return bool(arrays) and all(leaf.is_ready() for leaf in arrays)


def prepare(
    workload: type[Workload], case: Case, topology: Topology | None = None, *, traces: bool = True
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
    given = make_arguments(workload, case)
    own = jitted.find(workload.function, given.names)
    static = static_arguments(workload, case)
    if own is not None and (case.precision or case.transform not in ("forward", "sharded")):
        how = case.transform if case.transform != "forward" else f"precision={case.precision}"
        lost = own_options.lost_in(how, own, given.flat, static) if traces else ""
        if lost:
            raise transforms.NotApplicable(lost)
        own = None
    arguments = transforms.adapt_inputs(workload, case, given.flat)
    if own is not None and not own.takes_shapes:
        if topology is not None:
            raise transforms.NotApplicable(
                f"a {type(own.function).__name__} wants arrays to be traced with, and there is no "
                f"{topology.target} here"
            )
        abstract = arguments = inputs.fill(arguments)
    else:
        abstract = inputs.abstract(arguments, f"{where(workload)}, {case.id}", own is not None)
    shardings = transforms.shardings(case, abstract, topology.several if topology else None)
    if shardings is None and topology is not None:
        shardings = jax.tree_util.tree_map(lambda _: topology.one, abstract)
    if own is not None and topology is None:
        abstract = own_options.spread(own, abstract, shardings, static)
    elif shardings is not None:
        abstract = jax.tree_util.tree_map(own_options.placed, abstract, shardings)
    return Prepared(
        workload, case, arguments, abstract, shardings, static, topology, own, given.names
    )


def wrap(prepared: Prepared) -> Any:
    """Return a new jitted (or pmapped) function that shares no cache with an earlier one.

    Where the user has jitted it, that object itself.
    """
    if prepared.own is not None:
        return prepared.own  # `jax.clear_caches()` is what makes it new
    function = prepared.function()
    if prepared.is_pmap:
        fixed = functools.wraps(function)(functools.partial(function, **prepared.static))
        return jax.pmap(fixed, donate_argnums=prepared.donated_positions)
    placed: dict[str, Any] = {}
    if prepared.topology is not None and not jax.tree_util.tree_leaves(prepared.abstract):
        placed["out_shardings"] = prepared.topology.one  # no input says what is compiled for
    if prepared.names:
        placed["donate_argnums"] = prepared.donated_positions
    else:
        placed["donate_argnames"] = tuple(prepared.workload.donate)
    return jax.jit(function, static_argnames=tuple(prepared.workload.static), **placed)


def called(prepared: Prepared, wrapped: Any) -> Callable[..., Any]:
    """Return what users call, of what :func:`wrap` returned, with its static arguments."""
    call = wrapped if prepared.own is None else prepared.own.call
    return functools.partial(call, **prepared.keywords) if prepared.keywords else call


def supply(prepared: Prepared, compiled: Any) -> Iterator[tuple[Any, ...]]:
    """Yield arguments for one call after another: the same, with fresh buffers where donated."""
    data = prepared.data(compiled)
    donated = prepared.donated(compiled)
    if not any(donated):
        while True:
            yield data
    prepared.check_aliases(donated)
    leaves, structure = jax.tree_util.tree_flatten(data)
    while True:
        fresh = [
            leaf.copy() if one and inputs.is_array(leaf) else leaf
            for leaf, one in zip(leaves, donated, strict=True)
        ]
        yield jax.block_until_ready(jax.tree_util.tree_unflatten(structure, fresh))
