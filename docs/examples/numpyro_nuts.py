"""Fit a regression with NumPyro's NUTS, once for each fold of a cross-validation; needs numpyro.

Each fold makes a new sampler, and the folds differ in size.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, Predictive


def model(x, y=None):
    """Return a linear regression with unknown noise."""
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 1.0))
    weights = numpyro.sample("weights", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    with numpyro.plate("data", len(x)):
        return numpyro.sample("y", dist.Normal(intercept + x @ weights, noise), obs=y)


def sampler(**options):
    """Return a sampler that has not run yet."""
    return MCMC(NUTS(model), num_warmup=100, num_samples=100, **options)


def main():
    """Cross-validate."""
    options = argparse.ArgumentParser()
    options.add_argument("--keep", action="store_true", help="one sampler, and folds of one size")
    options = options.parse_args()

    data = np.random.default_rng(0)
    rows = 100 if options.keep else 103
    x = data.normal(size=(rows, 3)).astype(np.float32)
    y = (x @ np.array([1.0, -2.0, 0.5]) + 0.3 * data.normal(size=rows)).astype(np.float32)
    # Without its progress bar, NumPyro 0.22 gives jax.jit a new function in every run.
    one = sampler(jit_model_args=True, progress_bar=True)
    for number, held_out in enumerate(np.array_split(np.arange(rows), 4)):
        kept = np.setdiff1d(np.arange(rows), held_out)
        mcmc = one if options.keep else sampler(progress_bar=False)
        mcmc.run(jax.random.key(number), x[kept], y[kept])
        drawn = Predictive(model, mcmc.get_samples())(jax.random.key(9), x[held_out])["y"]
        error = jnp.sqrt(jnp.mean((drawn.mean(axis=0) - y[held_out]) ** 2))
        print(f"fold {number}: error {error:.3f}")


if __name__ == "__main__":
    main()
