"""Sample a posterior with BlackJAX; needs blackjax.

The number of samples is static, and grows; the second half jits `kernel.step` in the loop.
"""

import argparse
import functools

import blackjax
import jax
import jax.numpy as jnp
import jax.scipy.stats as stats
import numpy as np

observed = np.random.default_rng(0).normal(10, 20, size=1_000).astype(np.float32)


def logdensity(position):
    """Return the log-density of a normal's location and scale."""
    scale = jnp.exp(position["log_scale"])
    return position["log_scale"] + jnp.sum(stats.norm.logpdf(observed, position["loc"], scale))


@functools.partial(jax.jit, static_argnames=("kernel", "samples"))
def inference_loop(key, kernel, state, samples):
    """Return the last state of a chain, and all of them."""

    def one_step(state, key):
        state, _ = kernel(key, state)
        return state, state

    return jax.lax.scan(one_step, state, jax.random.split(key, samples))


def main():
    """Adapt and draw more and more samples; then try step sizes."""
    options = argparse.ArgumentParser()
    options.add_argument("--chunks", action="store_true", help="draw in chunks of one size")
    options.add_argument("--traced-size", action="store_true", help="the step size is an argument")
    options = options.parse_args()

    key = jax.random.key(0)
    start = {"loc": 1.0, "log_scale": 1.0}
    warmup = blackjax.window_adaptation(blackjax.nuts, logdensity)
    (state, parameters), _ = warmup.run(key, start, num_steps=200)
    nuts = blackjax.nuts(logdensity, **parameters)
    for samples in (100, 200, 400):
        size = 100 if options.chunks else samples
        drawn = []
        for _ in range(samples // size):
            key, mine = jax.random.split(key)
            state, states = inference_loop(mine, nuts.step, state, size)
            drawn.append(np.asarray(states.position["loc"]))
        print(f"{samples} samples: {np.concatenate(drawn).mean():.2f}")

    @jax.jit
    def one_step(key, state, step_size):
        return blackjax.nuts(logdensity, step_size, np.ones(2)).step(key, state)

    for step_size in (1e-3, 2e-3, 4e-3):
        hmc = blackjax.nuts(logdensity, step_size, np.ones(2))
        state, step = hmc.init(start), jax.jit(hmc.step)
        for number in range(20):
            if options.traced_size:
                state, _ = one_step(jax.random.key(number), state, step_size)
            else:
                state, _ = step(jax.random.key(number), state)
        print(f"step size {step_size}: {state.position['loc']:.2f}")


if __name__ == "__main__":
    main()
