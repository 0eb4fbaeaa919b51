"""Attention: batched matrix products around a softmax."""

import jax
import jax.numpy as jnp

from harness import Workload, spec


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
