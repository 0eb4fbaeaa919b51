"""Eight kinds of programs whose operations can be added to: of `added` more than 33."""

import equinox as eqx
import jax
import jax.numpy as jnp

from harness import Workload, spec

USUAL = 33


def chain(x, added):
    """Return `x` after a chain of operations."""
    for _ in range(USUAL + added):
        x = x * 1.01
    return x


class Chain(Workload):
    """Elementwise operations, one after the other."""

    sweep = {"added": [0, 1]}
    static = ("added",)

    def inputs(self, added):
        return spec((16,))

    function = staticmethod(lambda x, *, added: chain(x, added))


class Body(Chain):
    """The body of a loop."""

    @staticmethod
    def function(x, *, added):
        return jax.lax.scan(lambda c, _: (chain(c, added), None), x, None, length=4)[0]


class Gradient(Chain):
    """What is derived."""

    function = staticmethod(lambda x, *, added: jax.grad(lambda x: jnp.sum(chain(x, added)))(x))


class Batched(Chain):
    """What is batched."""

    function = staticmethod(lambda x, *, added: jax.vmap(lambda x: chain(x, added))(x))


class Layer(eqx.Module):
    """A layer of Equinox."""

    scale: jax.Array
    added: int = eqx.field(static=True)

    def __call__(self, x):
        for _ in range(USUAL + self.added):
            x = x * self.scale
        return x


class Equinox(Chain):
    """A layer of Equinox, called."""

    function = staticmethod(lambda x, *, added: Layer(jnp.ones(16), added)(x))


class OwnRule(Chain):
    """A function with a derivative of its own, which is asked for."""

    @staticmethod
    def function(x, *, added):
        @jax.custom_vjp
        def scaled(x):
            return chain(x, added)

        def forwards(x):
            return scaled(x), None

        def backwards(_, g):
            return (chain(g, added),)

        scaled.defvjp(forwards, backwards)
        return jax.grad(lambda x: jnp.sum(scaled(x)))(x)


class Inner(Chain):
    """A jitted function inside of another, called again and again."""

    @staticmethod
    def function(x, *, added):
        inner = jax.jit(lambda x: x * 1.01)
        for _ in range(USUAL + added):
            x = inner(x)
        return x


class Unrolled(Chain):
    """A long loop that Python unrolls: 3 % more of it."""

    @staticmethod
    def function(x, *, added):
        for _ in range(10 * (USUAL + added)):
            x = jnp.sin(x)
        return x


KINDS = (Chain, Body, Gradient, Batched, Equinox, OwnRule, Inner, Unrolled)
