"""Functions of which an artefact is made and loaded: what can be stored, and what cannot."""

import jax
import jax.numpy as jnp
import numpy as np

from harness import Workload, spec

DRAWN = np.random.default_rng().standard_normal(8, dtype="float32")


class Plain(Workload):
    """Can be stored."""

    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return jnp.sin(x) * 3


class Calling(Plain):
    """Calls Python back."""

    @staticmethod
    def function(x):
        jax.debug.print("{total}", total=x.sum())
        return x + 1


class Lapack(Plain):
    """Calls LAPACK, and returns a type that was not registered for files."""

    def inputs(self):
        return spec((8, 8))

    @staticmethod
    def function(x):
        return jnp.linalg.eig(x)


class Drawn(Plain):
    """Closes over what is drawn anew in each process."""

    @staticmethod
    def function(x):
        return x + DRAWN


def mixed(state, how, x, *, flip=False):
    return state * 2, (x if how == "same" else -x) * (-1 if flip else 1)


class Own(Plain):
    """A jitted function of the user's: static arguments of both kinds, donation, options."""

    sweep = {"flip": [True]}
    static = ("flip",)
    function = staticmethod(
        jax.jit(
            mixed,
            static_argnums=1,
            static_argnames="flip",
            donate_argnums=0,
            compiler_options={"xla_cpu_enable_fast_math": True},
        )
    )

    def inputs(self, flip):
        return spec((8,)), "other", spec((8,))


class Several(Plain):
    """Every way to use two devices, and one device of two."""

    transforms = ("forward", "sharded", "pmap")

    def inputs(self):
        return spec((4, 4))
