"""jax-ml/jax#2777: a loop of Python around a jitted step is one program of many copies."""

import functools

import jax
import jax.numpy as jnp


def inner_loop(key, ra, rb):
    """Return both mixed at random."""
    key, shard = jax.random.split(key)
    gate = jax.random.uniform(shard, (8, 1))
    ra, rb = 0.5 * (ra + gate * ra + (1 - gate) * rb), 0.5 * (rb + gate * ra + (1 - gate) * rb)
    return key, ra, rb


@functools.partial(jax.jit, static_argnames="n")
def sample(key, n):
    """Return the end of n steps."""
    ra, rb = jnp.ones((8, 2)), jnp.zeros((8, 2))
    for _ in range(n):  # HERE
        key, ra, rb = inner_loop(key, ra, rb)  # HERE
    return ra


print(float(sample(jax.random.key(1), n=40).sum()))
