"""Attention: batched matrix products around a softmax."""

import math

import jax
import jax.numpy as jnp

from benchmarks.kernels import attention as kernels
from harness import Workload, spec


class NaiveAttention(Workload):
    """Attention as its formula is written: does the compiler keep the score matrix out of memory?

    Inputs and output grow with the length, the scores with its square. XLA writes them out; a
    hand-written kernel with a running softmax does not.
    """

    sweep = {"length": [128, 512]}
    # On a GPU the default would be TF32, which no baseline in plain float32 can be held against.
    precisions = ("ieee",)

    def inputs(self, length):
        return (spec((1, 4, length, 64)),) * 3

    @staticmethod
    def function(query, key, value):
        scores = query @ jnp.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
        return jax.nn.softmax(scores, axis=-1) @ value

    @staticmethod
    def baseline(xp, query, key, value):
        # Scaling the query and dividing last touches fewer elements than doing it to the scores.
        scores = (query * (1 / math.sqrt(query.shape[-1]))) @ xp.matrix_transpose(key)
        weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        return weights @ value / xp.sum(weights, axis=-1, keepdims=True)

    fused_gpu = staticmethod(kernels.attention_gpu)


class MultiHeadAttention(Workload):
    """Multi-head self-attention: the score matrix grows with the square of the sequence length.

    The projections grow only linearly, so the two lengths show which part dominates. The causal
    mask is built inside the program: it should fuse into the softmax, and it saves no arithmetic.
    """

    sweep = {"length": [64, 256], "causal": [False, True]}
    static = ("causal",)

    def inputs(self, length):
        heads, features = 4, 128
        params = {
            name: spec((features, heads, features // heads)) for name in ("query", "key", "value")
        }
        params["output"] = spec((heads, features // heads, features))
        return params, spec((length, features))

    @staticmethod
    def function(params, x, *, causal):
        query = jnp.einsum("tf,fhd->htd", x, params["query"])
        key = jnp.einsum("tf,fhd->htd", x, params["key"])
        value = jnp.einsum("tf,fhd->htd", x, params["value"])
        scores = jnp.einsum("hqd,hkd->hqk", query, key) / jnp.sqrt(query.shape[-1])
        if causal:
            mask = jnp.tril(jnp.ones(scores.shape[-2:], dtype=bool))
            scores = jnp.where(mask, scores, -jnp.inf)
        weights = jax.nn.softmax(scores, axis=-1)
        return jnp.einsum("hqk,hkd,hdf->qf", weights, value, params["output"])
