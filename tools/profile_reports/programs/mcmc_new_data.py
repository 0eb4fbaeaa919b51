"""pyro-ppl/numpyro#441: `MCMC.run` compiles for each new set of data of the same shape."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def model(y):
    """Return nothing: location and scale of a normal."""
    location = numpyro.sample("location", dist.Normal(0.0, 10.0))
    scale = numpyro.sample("scale", dist.HalfNormal(5.0))
    numpyro.sample("y", dist.Normal(location, scale), obs=y)


for number in range(3):
    data = jnp.asarray(np.random.default_rng(number).normal(number, 1, size=50))
    mcmc = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
    mcmc.run(jax.random.key(number), data)  # HERE
    print(float(mcmc.get_samples()["location"].mean()))
