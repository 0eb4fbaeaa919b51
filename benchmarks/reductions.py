"""Reductions of a matrix along one of its axes."""

import jax
import jax.numpy as jnp

from benchmarks.kernels import rows, rows_gpu
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

    @staticmethod
    def baseline(xp, x, *, operator, axis):
        if operator != "logsumexp":
            return {"sum": xp.sum, "max": xp.max}[operator](x, axis=axis)
        # SciPy's logsumexp handles more (weights, signs, infinities), and takes longer.
        top = xp.max(x, axis=axis, keepdims=True)
        return xp.squeeze(top, axis=axis) + xp.log(xp.sum(xp.exp(x - top), axis=axis))

    fused_cpu = staticmethod(rows.reduce_cpu)
    fused_gpu = staticmethod(rows_gpu.reduce_gpu)
