"""Functions of one array, whose calls take from ten microseconds to tens of milliseconds."""

import jax
import jax.numpy as jnp

from harness import Workload, spec


class Gelu(Workload):
    """A small elementwise program, which runs where it is called."""

    def inputs(self):
        return spec((1024,))

    function = staticmethod(lambda x: jax.nn.gelu(x))


class LongGelu(Gelu):
    """An elementwise program of tens of microseconds."""

    def inputs(self):
        return spec((65_536,))


class Scan(Workload):
    """A loop of 256 small steps."""

    def inputs(self):
        return spec((256, 64))

    @staticmethod
    def function(x):
        return jax.lax.scan(lambda carry, row: (jnp.tanh(carry + row), carry.sum()), x[0], x)


class Product(Workload):
    """A product of matrices that takes some hundred microseconds."""

    def inputs(self):
        return spec((256, 256))

    function = staticmethod(lambda x: x @ x)


class Softmax(Workload):
    """Rows of a few megabytes."""

    def inputs(self):
        return spec((256, 4096))

    function = staticmethod(lambda x: jax.nn.softmax(x))


class Tanh(Workload):
    """An elementwise program of some milliseconds."""

    def inputs(self):
        return spec((2_097_152,))

    function = staticmethod(lambda x: jnp.tanh(x))


class Sort(Workload):
    """One thread, some ten milliseconds."""

    def inputs(self):
        return spec((32_768,))

    function = staticmethod(lambda x: jnp.sort(x))


class Products(Workload):
    """Four large products, on all cores."""

    def inputs(self):
        return spec((768, 768))

    function = staticmethod(lambda x: x @ (x @ (x @ (x @ x))))
