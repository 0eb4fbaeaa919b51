"""Make a case ready to be measured: its inputs, their shardings, and its jitted function."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax

from harness.declare import inputs, transforms
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
        """Return the arguments as arrays on the devices that the program wants them on."""
        if self._data is not None:
            return self._data
        filled = inputs.fill(self.arguments)
        if self.is_pmap:
            filled = jax.device_put(filled, compiled.input_shardings[0])
        elif self.shardings is not None:
            filled = jax.device_put(filled, self.shardings)
        else:
            filled = jax.device_put(filled)  # uncommitted, as a user's arrays are
        data: tuple[Any, ...] = jax.block_until_ready(filled)
        if sum(leaf.nbytes for leaf in jax.tree_util.tree_leaves(data)) <= _KEEP_DATA_BYTES:
            self._data = data
        return data


def prepare(workload: type[Workload], case: Case, topology: Topology | None = None) -> Prepared:
    """Make a case ready to be measured; with a `topology` it is compiled for that, and not run.

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
    arguments = transforms.adapt_inputs(workload, case, make_inputs(workload, case))
    abstract = inputs.abstract(arguments, f"{where(workload)}, {case.id}")
    shardings = transforms.shardings(case, abstract, topology.several if topology else None)
    if shardings is None and topology is not None:
        shardings = jax.tree_util.tree_map(lambda _: topology.one, abstract)
    if shardings is not None:
        abstract = jax.tree_util.tree_map(
            lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
            abstract,
            shardings,
        )
    static = static_arguments(workload, case)
    return Prepared(workload, case, arguments, abstract, shardings, static, topology)


def wrap(prepared: Prepared) -> Any:
    """Return a new jitted (or pmapped) function that shares no cache with an earlier one."""
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
    if not prepared.workload.donate:
        while True:
            yield data
    while True:
        arguments = list(data)
        for position in prepared.donated_positions:
            arguments[position] = jax.tree_util.tree_map(lambda x: x.copy(), data[position])
        yield tuple(jax.block_until_ready(arguments))
