"""One program of each of the libraries that people write JAX in, as their own pages write it."""

import functools
from typing import Any

import diffrax
import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer.util import log_density

from tools.corpus.programs.program import Program

BATCH = 64


def lorenz(t: Any, y: Any, args: Any) -> Any:
    """Return the derivative of Lorenz' system."""
    x, y, z = y
    sigma, rho, beta = args
    return jnp.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def solve(solver: diffrax.AbstractSolver, end: float, y0: Any, args: Any) -> Any:
    """Solve Lorenz' system with steps of their own choice."""
    controller = diffrax.PIDController(rtol=1e-5, atol=1e-5)
    term = diffrax.ODETerm(lorenz)
    return diffrax.diffeqsolve(
        term, solver, 0, end, 0.01, y0, args=args, stepsize_controller=controller
    ).ys


def tsit5(y0: Any, args: Any) -> Any:
    """Solve with an explicit method."""
    return solve(diffrax.Tsit5(), 10.0, y0, args)


def kvaerno3(y0: Any, args: Any) -> Any:
    """Solve with an implicit method."""
    return solve(diffrax.Kvaerno3(), 1.0, y0, args)


@eqx.filter_jit
def mlp(model: eqx.nn.MLP, x: jax.Array) -> jax.Array:
    """Apply a network to a batch."""
    return jax.vmap(model)(x)


optimizer = optax.adamw(1e-3)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def optax_step(parameters: Any, state: Any, x: jax.Array, y: jax.Array) -> Any:
    """Take a step of AdamW for a regression, in place."""

    def loss(parameters: Any) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ parameters["w"]) @ parameters["v"] - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(parameters)
    updates, state = optimizer.update(gradients, state, parameters)
    return optax.apply_updates(parameters, updates), state, value


def eight_schools(sigma: jax.Array, y: jax.Array) -> None:
    """Declare Rubin's model of eight schools."""
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("schools", 8):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("y", dist.Normal(theta, sigma), obs=y)


def numpyro_gradient(parameters: Any, sigma: jax.Array, y: jax.Array) -> Any:
    """Return the log density and its gradient, as a sampler calls it."""
    return jax.value_and_grad(lambda p: log_density(eight_schools, (sigma, y), {}, p)[0])(
        parameters
    )


network = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([256, 256, 10])(x)))
descent = optax.adam(1e-3)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def haiku_step(parameters: Any, state: Any, x: jax.Array, labels: jax.Array) -> Any:
    """Take a step of Adam for a classifier, in place."""

    def loss(parameters: Any) -> jax.Array:
        logits = network.apply(parameters, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    value, gradients = jax.value_and_grad(loss)(parameters)
    updates, state = descent.update(gradients, state)
    return optax.apply_updates(parameters, updates), state, value


def normal(seed: int, *shape: int) -> jax.Array:
    """Return an array of random numbers."""
    return jax.random.normal(jax.random.key(seed), shape)


def of_lorenz(size: str) -> tuple[Any, ...]:
    """Return where Lorenz' system begins, and its parameters."""
    return jnp.ones(3), (10.0, 28.0, 8 / 3)


def of_mlp(size: str) -> tuple[Any, ...]:
    """Return a network with functions among its leaves, and a batch."""
    return eqx.nn.MLP(32, 10, 256, 3, key=jax.random.key(0)), normal(1, BATCH, 32)


def of_optax(size: str) -> tuple[Any, ...]:
    """Return parameters, the optimiser's state, and a batch."""
    parameters = {"w": normal(0, 128, 512), "v": normal(1, 512, 1)}
    return parameters, optimizer.init(parameters), normal(2, BATCH, 128), normal(3, BATCH, 1)


def of_numpyro(size: str) -> tuple[Any, ...]:
    """Return a point, and the data of eight schools."""
    y = jnp.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    sigma = jnp.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    return {"mu": jnp.array(1.0), "tau": jnp.array(2.0), "theta": jnp.zeros(8)}, sigma, y


def of_haiku(size: str) -> tuple[Any, ...]:
    """Return parameters, the optimiser's state, and a batch."""
    x = normal(0, BATCH, 784)
    parameters = network.init(jax.random.key(1), x)
    return parameters, descent.init(parameters), x, jnp.arange(BATCH) % 10


PROGRAMS = {
    "tsit5": Program(tsit5, of_lorenz),
    "kvaerno3": Program(kvaerno3, of_lorenz),
    "equinox_mlp": Program(mlp, of_mlp),
    "optax_step": Program(optax_step, of_optax, donates=True),
    "numpyro_gradient": Program(numpyro_gradient, of_numpyro),
    "haiku_step": Program(haiku_step, of_haiku, donates=True),
}
