"""A small program that compiles more than it must: what `harness profile` shows of it.

harness profile -o slow-start -- python docs/examples/slow_start.py
harness profile report slow-start --figures slow-start
"""

from __future__ import annotations

import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.jit, static_argnames="steps")
def relax(state, steps):
    """`steps` is static, so that each number of steps is a program of its own."""
    for _ in range(steps):
        state = jnp.tanh(state @ state) / state.shape[0]
    return state


@jax.jit
def predict(params, batch):
    """A batch of each size is a program of its own."""
    return jax.nn.relu(batch @ params["w"] + params["b"])


def score(values):
    """Each call jits another lambda, so that none is found again."""
    return jax.jit(lambda x: jnp.square(x).sum())(values)


def main() -> None:
    """Relax on one thread, predict and score on another."""
    state = np.ones((64, 64), np.float32)
    params = {"w": np.ones((64, 16), np.float32), "b": np.zeros(16, np.float32)}

    def predictions():
        for size in (8, 16, 24, 32, 33):
            predict(params, np.ones((size, 64), np.float32))
        for _ in range(4):
            score(params["b"])

    other = threading.Thread(target=predictions)
    other.start()
    for steps in (1, 2, 4, 8, 16, 32):
        relax(state, steps)
    other.join()
    jax.clear_caches()
    predict(params, np.ones((8, 64), np.float32)).block_until_ready()


if __name__ == "__main__":
    main()
