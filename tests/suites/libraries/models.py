"""NumPyro: the log density of a model and its gradient, as a sampler calls it."""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import value_and_grad
from numpyro.infer.util import log_density

from harness import Workload, spec


def model(x):
    """Draw data around an unknown mean."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.sample("x", dist.Normal(mean, 1.0), obs=x)


class LogDensity(Workload):
    """A value and its gradient."""

    targets = ("cpu",)

    def inputs(self):
        return {"mean": jnp.zeros(())}, spec((16,))

    @staticmethod
    def function(parameters, x):
        return value_and_grad(lambda p: log_density(model, (x,), {}, p)[0])(parameters)
