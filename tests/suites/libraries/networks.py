"""Equinox, Optax, Haiku: jitted objects with options, and trees with leaves that are no arrays."""

import functools

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import optax

from harness import Workload, spec


@eqx.filter_jit
def apply(model, x, scale):
    """Call a module with functions among its leaves."""
    return model(x) * scale


@eqx.filter_jit(donate="all")
def descend(model, x):
    """Take a step of gradient descent, in place."""
    gradients = eqx.filter_grad(lambda model: jnp.sum(model(x) ** 2))(model)
    return eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradients))


class Mlp(Workload):
    """A module and a Python number as arguments."""

    targets = ("cpu",)
    sweep = {"width": [8]}
    function = staticmethod(apply)

    def inputs(self, width):
        return eqx.nn.MLP(4, 4, width, 2, key=jax.random.key(0)), spec((4,)), 0.5


class Descend(Workload):
    """A module that is donated."""

    targets = ("cpu",)
    function = staticmethod(descend)

    def inputs(self):
        return eqx.nn.MLP(4, 4, 8, 2, key=jax.random.key(0)), spec((4,))


network = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([8, 4])(x)))
optimizer = optax.adam(1e-3)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(parameters, state, x):
    """Take a step of Adam, in place, as a training loop does."""
    loss, gradients = jax.value_and_grad(lambda p: jnp.mean(network.apply(p, x) ** 2))(parameters)
    updates, state = optimizer.update(gradients, state, parameters)
    return optax.apply_updates(parameters, updates), state, loss


class TrainStep(Workload):
    """The donated state of a training loop."""

    targets = ("cpu",)
    function = train_step

    def inputs(self):
        x = jnp.ones((2, 4))
        parameters = network.init(jax.random.key(0), x)
        return parameters, optimizer.init(parameters), x
