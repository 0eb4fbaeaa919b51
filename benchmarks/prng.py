"""Pseudorandom numbers."""

import jax

from harness import Workload, spec


class Sample(Workload):
    """An array sampled from a key: a counter-based generator, then a transformation of its bits.

    `uniform` is little more than the generator; `normal` adds the inverse error function. The
    generator is integer arithmetic that depends on nothing but the key, so no memory is read.
    """

    sweep = {"distribution": ["uniform", "normal"], "shape": [(256, 256)]}
    static = ("distribution", "shape")

    def inputs(self):
        return spec((), "key")

    @staticmethod
    def function(key, *, distribution, shape):
        return getattr(jax.random, distribution)(key, shape)
