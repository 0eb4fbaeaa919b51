"""Reductions of a matrix along one of its axes."""

import jax
import jax.numpy as jnp

from harness import Workload, spec


class Reduce(Workload):
    """Monoid operators along the contiguous (1) or the strided (0) axis of a matrix.

    The operators are associative, so XLA is free to choose the order; `sum` and `max` are one
    pass over memory, `logsumexp` needs the maximum before it can sum. The axis shows whether the
    compiled loop follows the memory layout.
    """

    sweep = {"operator": ["sum", "max", "logsumexp"], "axis": [0, 1]}
    static = ("operator", "axis")

    def inputs(self):
        return spec((512, 512))

    @staticmethod
    def function(x, *, operator, axis):
        operators = {"sum": jnp.sum, "max": jnp.max, "logsumexp": jax.nn.logsumexp}
        return operators[operator](x, axis=axis)
