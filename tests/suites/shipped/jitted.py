"""A function as users have it: jitted with options of theirs, called with keywords."""

import functools

import jax
import jax.numpy as jnp

from harness import Workload, arguments, spec


@functools.partial(jax.jit, static_argnames="power", donate_argnames="mask")
def masked(x, *, scale, mask, power):
    """Return `x` where `mask` is set, and take `mask` away from its caller."""
    return jnp.where(mask > 0, x * scale, mask) ** power


class Masked(Workload):
    """Gives an array and a number by keyword; the array is donated."""

    sweep = {"size": [8, 16], "power": [2]}
    static = ("power",)

    def inputs(self, size, power):
        return arguments(spec((size,)), scale=2.0, mask=spec((size,)))

    function = staticmethod(masked)
