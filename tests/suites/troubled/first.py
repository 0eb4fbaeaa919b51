"""First calls: what a user feels, and what is none."""

import gc

import jax
import jax.numpy as jnp

from harness import Workload, spec

KEPT = []


class Littering(Workload):
    """Leaves so many objects behind while it is traced that Python collects them, on the clock."""

    targets = ("cpu",)
    first_calls = 1

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        KEPT.append([[] for _ in range(200_000)])
        gc.collect()
        return x + 1


class Due(Workload):
    """Is called when a full collection is due of what was there before; fails if it still is."""

    targets = ("cpu",)
    first_calls = 1

    def inputs(self):
        for _ in range(12):
            gc.collect(1)
        return spec((8,))

    @staticmethod
    def function(x):
        assert not gc.isenabled() or gc.get_count()[2] < 10
        return x * 2


class Seen(Workload):
    """Is traced before its first call, where `seen`; JAX then has forgotten it again."""

    sweep = {"seen": [True, False]}
    targets = ("cpu",)
    scenarios = ("cold", "warm")
    first_calls = 1

    def inputs(self, seen):
        x = jnp.ones(8)
        if seen:
            jax.jit(Seen.function)(x)
            jax.clear_caches()
        return x

    @staticmethod
    def function(x):
        return jnp.sin(x) * 3


def step(state, x):
    return state + x


class Jitted(Workload):
    """A jitted function of the user's, which donates its state."""

    targets = ("cpu",)
    first_calls = 1

    def inputs(self):
        return spec((8,)), spec((8,))

    function = staticmethod(jax.jit(step, donate_argnums=0))


class Several(Workload):
    """Every way to use two devices."""

    targets = ("cpu",)
    transforms = ("forward", "sharded", "pmap")
    first_calls = 1

    def inputs(self):
        return spec((4, 4))

    @staticmethod
    def function(x):
        return jnp.cos(x)


class LeftOut(Workload):
    """Wants no first call."""

    targets = ("cpu",)
    scenarios = ("cold",)
    first_calls = 0

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return x + 2


class Factor(Workload):
    """Two programs that can stand for each other."""

    sweep = {"factor": [2, 3]}
    static = ("factor",)
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x, factor):
        return jnp.sin(x) * factor
