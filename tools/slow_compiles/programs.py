"""Programs of public reports of slow compiles, each with its expected cause or group of passes.

They are written anew, as small as they show what was reported; sizes are such that each compiles in
about a minute at most. What is expected was written down before any of them was run.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harness import Workload, spec
from harness.program.compiler.tree import FOLDING, GENERATION

MANY = np.arange(1_000_000)
ZEROS = np.zeros((200_000, 10, 10), np.float32)


class Report(Workload):
    targets = ("cpu",)
    about = ""
    """Repository, and number of the issue."""
    expected = ()
    """Kinds of causes, or a group of passes: the first one shown must be among them."""


class Unrolled(Report):
    about = "jax-ml/jax#2777"
    expected = ("loop", "repeated")

    def inputs(self):
        return spec((), "key"), spec((8, 2)), spec((8, 2))

    @staticmethod
    def function(key, a, b):
        for _ in range(24):
            key, part = jax.random.split(key)
            gate = jax.random.uniform(part, (8, 1))
            mixed = gate * a + (1 - gate) * b
            a, b = 0.5 * (a + mixed), 0.5 * (b + mixed)
        return a


class Sparse(Report):
    about = "jax-ml/jax#14655"
    expected = ("folding", "constants", FOLDING)

    def inputs(self):
        return spec((1_000_000,))

    @staticmethod
    def function(x):
        return (jnp.zeros(MANY.size).at[MANY].add(jnp.ones(MANY.size) / x[MANY])).sum()


class SumOfConstant(Report):
    about = "jax-ml/jax#21300"
    expected = ("folding", "constants", FOLDING)

    def inputs(self):
        return spec(())

    @staticmethod
    def function(x):
        return x + jax.vmap(jax.vmap(jnp.sum))(ZEROS).sum()


class UpdateOfConstant(Report):
    about = "jax-ml/jax#12789"
    expected = ("folding", FOLDING)

    def inputs(self):
        return spec(())

    @staticmethod
    def function(x):
        return jnp.ones((300, 300, 300)).at[100, 100, 100].set(2) + x


class RankData(Report):
    about = "jax-ml/jax#24707"
    expected = ("folding", FOLDING)

    def inputs(self):
        return spec(())

    @staticmethod
    def function(x):
        return x + jax.scipy.stats.rankdata(jnp.zeros(1_000_000), "dense")


class FourierOfConstant(Report):
    about = "jax-ml/jax#10596"
    targets = ("gpu:h200",)
    expected = ("folding", FOLDING)

    def inputs(self):
        return spec(())

    @staticmethod
    def function(x):
        return x + jnp.abs(jnp.fft.fft(jnp.asarray(MANY[:8000], "float32")))


class Switch(Report):
    about = "jax-ml/jax#4453"
    expected = ("switch",)

    def inputs(self):
        return spec((), "int32"), spec(())

    @staticmethod
    def function(which, x):
        return lax.switch(which, [lambda x: x**2 for _ in range(256)], x)


class ComplexScan(Report):
    about = "jax-ml/jax#18221"
    expected = ("associative scan",)

    def inputs(self):
        return spec((50_000, 32), "complex64"), spec((50_000, 32), "complex64")

    @staticmethod
    def function(a, x):
        return lax.associative_scan(lambda m, n: (n[0] * m[0], n[0] * m[1] + n[1]), (a, x))[1]


class HighRank(Report):
    about = "openxla/xla#41173"
    expected = (GENERATION, "repeated", "loop")

    def inputs(self):
        return ([spec((2,) * 4) for _ in range(10)],)

    @staticmethod
    def function(tensors):
        whole = tensors[0]
        for one in tensors[1:]:
            whole = jnp.tensordot(whole, one, 1)
        return jnp.sin(whole.transpose() + whole).sum()


class LineSearch(Report):
    """The report's own needs a package; this one is four times slower for each `body` more, too.

    On jax 0.12.0.1 that is, with the report's flag as without it; on 0.10.2 and 0.11.2 it is not.
    """

    about = "jax-ml/jax#40416"
    expected = (GENERATION, "library")

    def inputs(self):
        return spec((64,))

    @staticmethod
    def function(x):
        import optax

        def body(x):
            return jnp.sin(x) + x[::-1]

        def value(x):
            return (body(body(body(body(body(body(body(x))))))) ** 2).sum()

        search = optax.scale_by_zoom_linesearch(max_linesearch_steps=15)
        v, g = jax.value_and_grad(value)(x)
        return search.update(g, search.init(x), x, value=v, grad=g, value_fn=value)[0]
