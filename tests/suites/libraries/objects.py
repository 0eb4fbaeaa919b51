"""Objects with options of their own, sizes that go together, and values that have names."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from harness import Workload, spec


def spread():
    """Return a sharding over all devices of this process."""
    return NamedSharding(jax.make_mesh((jax.device_count(),), ("d",)), PartitionSpec(None, "d"))


class Stencil(Workload):
    """The steps belong to the size, and the activation has a name."""

    targets = ("cpu",)
    sweep = {
        "size": {"S": {"n": 8, "steps": 1}, "M": {"n": 16, "steps": 2}},
        "activation": {"tanh": jnp.tanh},
    }
    static = ("steps", "activation")

    def inputs(self, n):
        return spec((n,))

    @staticmethod
    def function(x, steps, activation):
        for _ in range(steps):
            x = activation(x)
        return x


class Spread(Workload):
    """A jitted function that says itself on which devices its first argument is."""

    targets = ("cpu",)
    transforms = ("sharded",)
    function = staticmethod(
        jax.jit(
            lambda x, y: (2 * x, y),
            in_shardings=(spread(), None),
            out_shardings=(spread(), None),
            donate_argnums=0,
        )
    )

    def inputs(self):
        return spec((4, 16)), spec((16,))
