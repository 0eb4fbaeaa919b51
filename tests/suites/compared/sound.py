"""Comparisons that are right."""

import jax
import jax.numpy as jnp

from harness import Workload, spec


class Gelu(Workload):
    """An elementwise chain."""

    sweep = {"size": [1024]}
    targets = ("cpu", "gpu")

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    @staticmethod
    def baseline(xp, x):
        return 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    @staticmethod
    def fused_cpu():
        import numexpr

        def gelu(x):
            return numexpr.evaluate(
                "half * x * (one + tanh(a * (x + b * x * x * x)))",
                {
                    "x": x,
                    "half": x.dtype.type(0.5),
                    "one": x.dtype.type(1),
                    "a": x.dtype.type(0.7978845608),
                    "b": x.dtype.type(0.044715),
                },
            )

        return gelu


class Product(Workload):
    """A matrix product with two outputs, a static axis, and a precision."""

    sweep = {"power": [2], "dtype": ["float32", "bfloat16"]}
    static = ("power",)
    precisions = ("ieee", "tf32")
    targets = ("cpu", "gpu")

    def inputs(self, dtype):
        return {"w": spec((32, 16), dtype), "b": spec((16,), dtype)}, spec((64, 32), dtype)

    @staticmethod
    def function(params, x, *, power):
        y = jax.nn.relu(x @ params["w"] + params["b"])
        return {"y": y**power, "best": jnp.argmax(y, axis=1)}

    @staticmethod
    def baseline(xp, params, x, *, power):
        y = xp.maximum(x @ params["w"] + params["b"], xp.asarray(0, dtype=x.dtype))
        return {"y": y**power, "best": xp.astype(xp.argmax(y, axis=1), xp.int32)}
