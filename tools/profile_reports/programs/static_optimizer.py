"""google-deepmind/optax#353: an optimizer is static, and made in each call of `train`."""

import functools

import jax
import jax.numpy as jnp
import optax


@functools.partial(jax.jit, static_argnames="optimizer")
def train_step(optimizer, params, opt_state):
    """Take a step."""
    grads = jax.grad(lambda p: jnp.sum((p - 1.0) ** 2))(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state


def train():
    """Return the parameters after some steps."""
    optimizer = optax.adam(1e-2)
    params = jnp.zeros((32, 32))
    opt_state = optimizer.init(params)
    for _ in range(5):
        params, opt_state = train_step(optimizer, params, opt_state)  # HERE
    return params


for _ in range(3):
    last = train()
print(float(last.sum()))
