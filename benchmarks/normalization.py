"""Normalizations: a reduction along each row whose result is broadcast back over the row."""

import jax
import jax.numpy as jnp

from benchmarks.kernels import rows, rows_gpu
from harness import Workload, spec


class Softmax(Workload):
    """Softmax over rows: two dependent reductions (maximum, sum) and the passes between them.

    The number of elements is the same for each width, so a difference between the cases is due to
    the shape of the reduction alone. On a GPU, rows up to a certain width become one kernel, and
    wider ones several: compiled for an H200 by jax 0.10 and 0.11, the cliff is between the two
    greatest widths.
    """

    sweep = {"width": [128, 4096, 16384, 32768]}
    targets = ("cpu", "gpu", "tpu", "gpu:h200", "tpu:v5e")

    def inputs(self, width):
        return spec((2**18 // width, width))

    @staticmethod
    def function(x):
        return jax.nn.softmax(x, axis=-1)

    @staticmethod
    def baseline(xp, x):
        weights = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return weights / xp.sum(weights, axis=-1, keepdims=True)

    fused_cpu = staticmethod(rows.softmax_cpu)
    fused_gpu = staticmethod(rows_gpu.softmax_gpu)


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

    @staticmethod
    def baseline(xp, x, scale, shift):
        centred = x - xp.mean(x, axis=-1, keepdims=True)
        variance = xp.mean(centred * centred, axis=-1, keepdims=True)
        return centred * (1 / xp.sqrt(variance + 1e-6)) * scale + shift

    fused_cpu = staticmethod(rows.layer_norm_cpu)
    fused_gpu = staticmethod(rows_gpu.layer_norm_gpu)
