"""Programs with one known cost each, where the equations stand, or the loop, with `# here` behind.

`costs` names what is dear: a stage of JAX's, or a group of the compile.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harness import Workload, spec

GENERATION = "code generation"
FOLDING = "constant folding"
NUMBERS = np.random.default_rng(0).random(25_000_000, np.float32)
KNOWN = np.random.default_rng(0).random((150, 150), np.float32)


class Planted(Workload):
    targets = ("cpu",)
    costs = GENERATION
    given = spec((64,))

    def inputs(self):
        return self.given


class Constant(Planted):
    """A constant of 100 MB."""

    costs = "constants"

    function = staticmethod(lambda x: NUMBERS * x[0])  # here


class Steps(Planted):
    """400 steps of a Python loop."""

    @staticmethod
    def function(x):
        for _ in range(400):  # here
            x = jnp.sin(x) + lax.rev(x, (0,))
        return x


class SortOfManyKeys(Planted):
    """A sort of 64 arrays by all of them."""

    given = spec((64, 256))

    function = staticmethod(lambda x: lax.sort([row for row in x], num_keys=64))  # here


class UnrolledFori(Planted):
    """A loop of 128 turns that is unrolled."""

    @staticmethod
    def function(x):
        def body(i, x):
            return jnp.roll(jnp.cos(x), i)

        return lax.fori_loop(0, 128, body, x, unroll=128)  # here


class UnrolledScan(Planted):
    """A scan of 256 turns, unrolled by 64."""

    @staticmethod
    def function(x):
        def body(x, _):
            return jnp.tanh(x[::-1]) * 1.5, None

        return lax.scan(body, x, None, length=256, unroll=64)[0]  # here


class HugeSwitch(Planted):
    """A switch of 150 branches."""

    given = spec((), "int32"), spec((64,))

    @staticmethod
    def function(which, x):
        branches = [lambda x, n=n: jnp.sin(x * n)[::-1].cumsum() for n in range(150)]  # here
        return lax.switch(which, branches, x)


class ManyParameters(Planted):
    """1,000 parameters."""

    given = [spec((8,)) for _ in range(1000)], spec((8,))

    @staticmethod
    def function(weights, x):
        for weight in weights:  # here
            x = x * weight
        return x


class NestedVmap(Planted):
    """Nine vmaps, one in the other, of a function of many operations."""

    costs = "trace"
    given = spec((2,) * 9)

    @staticmethod
    def function(x):
        def one(x):
            for _ in range(60):  # here
                x = jnp.where(x > 0, x * 2, jnp.sin(x))
            return x

        for _ in range(9):
            one = jax.vmap(one)
        return one(x)


class Folding(Planted):
    """A sort of numbers that depend on no argument."""

    costs = FOLDING

    @staticmethod
    def function(x):
        most = lax.sort(KNOWN)  # here
        return x + most[0, :64]


class Scatters(Planted):
    """200 updates at places that are not known."""

    given = spec((64,)), spec((200, 4), "int32")

    @staticmethod
    def function(x, places):
        for n in range(200):  # here
            x = x.at[places[n]].add(1.0)
        return x


class Gathers(Planted):
    """150 gathers by index arrays."""

    given = spec((64, 64)), spec((64,), "int32")

    @staticmethod
    def function(x, places):
        return sum(x[places + n, places[::-1]] for n in range(150))  # here


class RandomKeys(Planted):
    """80 draws, each from a key of its own."""

    given = spec((), "key")

    @staticmethod
    def function(key):
        return sum(jax.random.normal(jax.random.fold_in(key, n), (64,)) for n in range(80))  # here


class DeepGradient(Planted):
    """The gradient of 250 layers that are written out."""

    @staticmethod
    def function(x):
        def loss(x):
            for _ in range(250):  # here
                x = jnp.tanh(x) @ jnp.outer(x, x)
            return x.sum()

        return jax.grad(loss)(x)


class Whiles(Planted):
    """80 loops with a condition."""

    @staticmethod
    def function(x):
        for _ in range(80):  # here
            x = lax.while_loop(lambda x: x.sum() < 10, lambda x: jnp.exp(x)[::-1], x)
        return x


class AssociativeScan(Planted):
    """An associative scan of matrices over 4,096 elements."""

    given = spec((4096, 3, 3))

    function = staticmethod(lambda x: lax.associative_scan(jnp.matmul, x))  # here


class Convolutions(Planted):
    """60 convolutions of unlike sizes."""

    given = spec((1, 4, 16, 16))

    @staticmethod
    def function(x):
        for n in range(60):  # here
            kernel = jnp.full((4, 4, 1 + n % 5, 1 + n % 3), 0.1 * n)
            x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME")
        return x


class CustomGradients(Planted):
    """120 functions with a gradient of their own."""

    @staticmethod
    def function(x):
        @jax.custom_vjp
        def clipped(x):
            return jnp.clip(x, -1, 1)

        clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (g * (jnp.abs(x) < 1),))

        def loss(x):
            for _ in range(120):  # here
                x = clipped(jnp.sin(x))
            return x.sum()

        return jax.grad(loss)(x)


class Remat(Planted):
    """60 checkpointed blocks, differentiated."""

    @staticmethod
    def function(x):
        @functools.partial(jax.checkpoint)
        def block(x):
            return jnp.sin(jnp.cos(x)[::-1].cumsum())

        def loss(x):
            for _ in range(60):  # here
                x = block(x)
            return x.sum()

        return jax.grad(loss)(x)


class Transforms(Planted):
    """100 Fourier transforms and what lies between them."""

    @staticmethod
    def function(x):
        for _ in range(100):  # here
            x = jnp.abs(jnp.fft.fft(x))
        return x


class Einsums(Planted):
    """100 contractions of three arrays."""

    costs = "trace"
    given = spec((8, 8)), spec((8, 8)), spec((8, 8))

    @staticmethod
    def function(a, b, c):
        for _ in range(100):  # here
            a = jnp.einsum("ij,jk,lk->il", a, b, c)
        return a
