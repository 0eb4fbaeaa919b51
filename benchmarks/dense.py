"""Dense layers: matrix products with elementwise epilogues."""

from itertools import pairwise

import jax
import jax.numpy as jnp

from harness import Workload, spec


class Predict(Workload):
    """Dense layer with ReLU: XLA should fuse the bias and the ReLU into the matrix product."""

    sweep = {"batch": [64, 1024], "dtype": ["float32", "bfloat16"]}

    def inputs(self, batch, dtype):
        return spec((784, 256), dtype), spec((256,), dtype), spec((batch, 784), dtype)

    @staticmethod
    def function(w, b, x):
        return jax.nn.relu(x @ w + b)


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
