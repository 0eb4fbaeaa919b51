"""Normalizations: a reduction along each row whose result is broadcast back over the row."""

import jax
import jax.numpy as jnp

from harness import Workload, spec


class Softmax(Workload):
    """Softmax over rows: two dependent reductions (maximum, sum) and the passes between them.

    The number of elements is the same for each width, so a difference between the cases is due to
    the shape of the reduction alone.
    """

    sweep = {"width": [128, 4096]}

    def inputs(self, width):
        return spec((2**18 // width, width))

    @staticmethod
    def function(x):
        return jax.nn.softmax(x, axis=-1)


class LayerNorm(Workload):
    """Layer normalization over rows: mean, variance, scale and shift, and their gradient.

    The gradient reduces along both axes: along each row for the input, over all rows for the scale
    and the shift.
    """

    sweep = {"width": [128, 4096]}
    transforms = ("forward", "gradient")

    def inputs(self, width):
        return spec((2**18 // width, width)), spec((width,)), spec((width,))

    @staticmethod
    def function(x, scale, shift):
        mean = jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.var(x, axis=-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + shift
