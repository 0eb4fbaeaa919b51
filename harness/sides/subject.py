"""What a case declares, whoever computes it; and whether a side can take part in it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax

from harness.declare import transforms
from harness.declare.workload import Case, Workload
from harness.sides import guards
from harness.sides.side import Side, Unavailable
from harness.stages.prepared import Prepared, prepare


@dataclass(frozen=True)
class Subject:
    """A case made ready to be computed by any side."""

    prepared: Prepared
    jaxpr: Any
    declared: Any
    """The result as a pytree of `jax.ShapeDtypeStruct`: the JAX function decides on dtypes."""
    parameters: list[str]
    """Of the JAX function."""
    names: list[str]
    """Of the input leaves."""

    @property
    def has_products(self) -> bool:
        """Whether there are matrix products or convolutions."""
        text = str(self.jaxpr)
        return "dot_general" in text or "conv_general" in text

    @property
    def argument_bytes(self) -> int:
        """Bytes of all inputs."""
        return _nbytes(self.prepared.abstract)

    @property
    def output_bytes(self) -> int:
        """Bytes of all outputs."""
        return _nbytes(self.declared)


def subject_of(workload: type[Workload], case: Case, side: type[Side]) -> Subject:
    """Trace the JAX function abstractly and return what the case declares.

    Raises:
        WorkloadError: the case is declared wrongly.
        NotApplicable: it cannot be measured here.
        Unavailable: it is no comparison, or none for `side`.
    """
    if workload.donate:
        raise Unavailable("its inputs are donated, and a comparison uses each of them many times")
    prepared = prepare(workload, case)
    function = partial(transforms.transformed(workload, case), **prepared.static)
    jaxpr, declared = jax.make_jaxpr(function, return_shape=True)(*prepared.abstract)
    leaves = jax.tree_util.tree_leaves((prepared.abstract, declared))
    if any(jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended) for leaf in leaves):
        raise Unavailable("it takes or returns PRNG keys, which only JAX has")
    foreign = sorted({leaf.dtype.name for leaf in leaves if leaf.dtype.isbuiltin != 1})
    if foreign and side.rounds_narrow_sums:
        raise Unavailable(
            f"NumPy rounds sums of {', '.join(foreign)} after every step, which is no baseline for "
            "a program that sums in float32"
        )
    parameters = list(inspect.signature(workload.function).parameters)
    names = guards.names_of(prepared.abstract, parameters)
    return Subject(prepared, jaxpr, declared, parameters, names)


def _nbytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree_util.tree_leaves(tree))
