"""A training step of a transformer of 24 layers: a Python loop over the layers, and a scan."""

import jax
import jax.numpy as jnp

from harness import Workload, spec

LAYERS, WIDTH, HEADS, TOKENS, WORDS = 24, 256, 4, 128, 1024


def attention(layer, x):
    query, key, value = jnp.split(x @ layer["qkv"], 3, axis=-1)
    query, key, value = (a.reshape(-1, HEADS, WIDTH // HEADS) for a in (query, key, value))
    return jax.nn.dot_product_attention(query, key, value, is_causal=True).reshape(x.shape)


def block(x, layer):
    x = x + attention(layer, jax.nn.standardize(x)) @ layer["out"]
    return x + jax.nn.gelu(jax.nn.standardize(x) @ layer["up"]) @ layer["down"]


def loss(params, tokens, form):
    x = params["embedding"][tokens[:-1]]
    if form == "scanned":
        x, _ = jax.lax.scan(lambda x, layer: (block(x, layer), None), x, params["layers"])
    else:
        for number in range(LAYERS):
            x = block(x, jax.tree.map(lambda leaf, at=number: leaf[at], params["layers"]))
    logits = jax.nn.log_softmax(x @ params["embedding"].T)
    return -jnp.mean(jnp.take_along_axis(logits, tokens[1:, None], axis=-1))


class TrainStep(Workload):
    """Value, gradient and one step of gradient descent."""

    sweep = {"form": ["unrolled", "scanned"]}
    static = ("form",)

    def inputs(self):
        sizes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH)}
        sizes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
        layers = {name: spec((LAYERS, *size), low=-0.03, high=0.03) for name, size in sizes.items()}
        params = {"embedding": spec((WORDS, WIDTH), low=-0.03, high=0.03), "layers": layers}
        return params, spec((TOKENS + 1,), "int32", low=0, high=WORDS)

    @staticmethod
    def function(params, tokens, *, form):
        value, slopes = jax.value_and_grad(loss)(params, tokens, form)
        return jax.tree.map(lambda p, s: p - 1e-3 * s, params, slopes), value
