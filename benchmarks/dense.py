"""Dense layers: matrix products with elementwise epilogues."""

import math
from itertools import pairwise

import jax
import jax.numpy as jnp

from benchmarks.kernels import dense as kernels
from harness import Workload, spec


class Predict(Workload):
    """Dense layer with ReLU: XLA should fuse the bias and the ReLU into the matrix product."""

    sweep = {"batch": [64, 1024], "dtype": ["float32", "bfloat16"]}

    def inputs(self, batch, dtype):
        return spec((784, 256), dtype), spec((256,), dtype), spec((batch, 784), dtype)

    @staticmethod
    def function(w, b, x):
        return jax.nn.relu(x @ w + b)

    @staticmethod
    def baseline(xp, w, b, x):
        return xp.maximum(x @ w + b, 0)

    fused_gpu = staticmethod(kernels.predict_gpu)


class MatmulPrecision(Workload):
    """One float32 product at three precisions: what does the hardware's shortcut buy?

    A GPU may round the operands to TF32 or bfloat16 and use tensor cores. JAX does so by default
    and CuPy does not, so only times at equal precision compare. A CPU has no such choice.
    """

    precisions = ("ieee", "tf32", "bf16")

    def inputs(self):
        return spec((512, 512)), spec((512, 512))

    @staticmethod
    def function(a, b):
        return a @ b

    @staticmethod
    def baseline(xp, a, b):
        return a @ b


class MlpLoss(Workload):
    """Cross-entropy loss of a multilayer perceptron and its gradient: one training step's core.

    The parameters are a pytree, one dictionary per layer, and the layers are a Python loop, so
    tracing and lowering grow with the depth; reverse mode about triples the matrix products.
    """

    sweep = {"depth": [4]}
    scenarios = ("off", "cold", "warm")
    transforms = ("forward", "gradient")

    def inputs(self, depth):
        widths = [128] * depth + [10]
        params = {
            f"layer_{i}": {"w": spec((fan_in, fan_out)), "b": spec((fan_out,))}
            for i, (fan_in, fan_out) in enumerate(pairwise(widths))
        }
        return params, spec((128, widths[0])), spec((128,), "int32", low=0, high=widths[-1])

    @staticmethod
    def function(params, x, labels):
        for i in range(len(params)):
            layer = params[f"layer_{i}"]
            x = x @ layer["w"] + layer["b"]
            if i < len(params) - 1:
                # Keeps the activations of order one under standard normal weights.
                x = jax.nn.relu(x) / jnp.sqrt(x.shape[-1])
        targets = jax.nn.one_hot(labels, x.shape[-1])
        return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(x), axis=-1))

    @staticmethod
    def baseline(xp, params, x, labels):
        for i in range(len(params)):
            layer = params[f"layer_{i}"]
            x = x @ layer["w"] + layer["b"]
            if i < len(params) - 1:
                x = xp.maximum(x, 0) * (1 / math.sqrt(x.shape[-1]))
        x = x - xp.max(x, axis=-1, keepdims=True)
        normalizers = xp.log(xp.sum(xp.exp(x), axis=-1))
        of_labels = xp.take_along_axis(x, labels[:, None], axis=-1)[:, 0]
        return xp.mean(normalizers - of_labels)
