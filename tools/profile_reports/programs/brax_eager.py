"""google/brax#193: a simulation whose steps are not jitted."""

import jax
import jax.numpy as jnp
from brax import envs


def simulate(env, steps):
    """Return the height after some steps."""
    state = env.reset(jax.random.key(0))  # HERE
    for _ in range(steps):
        state = env.step(state, jnp.zeros(env.action_size))  # HERE
    return state.obs[0]


print(float(simulate(envs.get_environment("fast"), 3)))
