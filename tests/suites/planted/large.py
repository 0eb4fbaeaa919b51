"""A large program with one known cost, at the loop with `# here` behind, for each target."""

import jax
import jax.numpy as jnp

from harness import Workload, spec

WIDTH, HEADS, LENGTH, LAYERS = 512, 8, 128, 24


class Layers(Workload):
    """The gradient of 24 layers of a transformer, each with weights of its own."""

    costs = "code generation"
    targets = ("cpu", "gpu:h200", "tpu:v5e")

    def inputs(self):
        sizes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH)}
        sizes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
        layer = {name: spec(size) for name, size in sizes.items()}
        return [dict(layer) for _ in range(LAYERS)], spec((LENGTH, WIDTH))

    @staticmethod
    def function(layers, x):
        def block(x, w):
            q, k, v = jnp.split((x @ w["qkv"]).reshape(LENGTH, 3 * HEADS, -1), 3, axis=1)
            a = jax.nn.softmax(jnp.einsum("ihd,jhd->hij", q, k))
            x = x + jnp.einsum("hij,jhd->ihd", a, v).reshape(LENGTH, WIDTH) @ w["out"]
            return x + jax.nn.gelu(x @ w["up"]) @ w["down"]

        def loss(layers, x):
            for each in layers:  # here
                x = block(x, each)
            return (x**2).mean()

        return jax.grad(loss)(layers, x)
