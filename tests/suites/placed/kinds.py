"""Every kind of input that says, or does not say, what a program is compiled for."""

import jax
import jax.numpy as jnp
import numpy as np

from harness import Workload, spec

TABLE = np.arange(8, dtype=np.float32)


class Kinds(Workload):
    """One small program per kind."""

    sweep = {"kind": ["spec", "array", "struct", "key", "closure", "tree", "none", "unused"]}
    static = ("kind",)
    transforms = ("forward", "vmap", "sharded", "pmap")
    targets = ("cpu", "gpu:h200", "tpu:v5e")
    scenarios = ("off", "cold")

    def skip(self, kind, transform, **case):
        if transform != "forward" and kind != "spec":
            return "one kind is enough"
        return None

    def inputs(self, kind):
        if kind == "array":
            return (TABLE,)
        if kind == "struct":
            return (jax.ShapeDtypeStruct((8,), "float32"),)
        if kind == "key":
            return (spec((), "key"),)
        if kind == "tree":
            return ({"a": spec((8,)), "b": [spec((4, 4))]},)
        return () if kind == "none" else (spec((8,)),)

    @staticmethod
    def function(*args, kind):
        if kind == "none":
            return jnp.ones(8) * 2
        if kind == "unused":
            return jnp.ones(8)
        (x,) = args
        if kind == "key":
            return jax.random.normal(x, (8,))
        if kind == "closure":
            return x + TABLE
        if kind == "tree":
            return x["a"].sum() + x["b"][0]
        return jnp.tanh(x) * 2


class Updated(Workload):
    """Donates, and is differentiated."""

    donate = ("x",)
    transforms = ("forward", "gradient")
    targets = ("gpu",)

    def inputs(self):
        return spec((8,)), spec((8,))

    @staticmethod
    def function(x, y):
        return x * 2 + y
