"""Workloads that behave."""

import jax.numpy as jnp

from harness import Workload, spec


class Scale(Workload):
    """Two cases that take next to no time."""

    sweep = {"size": [8, 16]}

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return jnp.sin(x) * 2


class Several(Workload):
    """Two devices: one case for each way to use them."""

    transforms = ("forward", "sharded", "pmap")

    def inputs(self):
        return spec((4, 4))

    @staticmethod
    def function(x):
        return jnp.cos(x)


class Größe(Workload):
    """Names need not be English."""

    sweep = {"länge": [4], "name": ["größer-als", "x=1, y"]}
    static = ("name",)

    def inputs(self, länge):
        return spec((länge,))

    @staticmethod
    def function(x, name):
        return x + len(name)
