"""Stencils: each element is computed from its neighbors."""

import jax.numpy as jnp

from harness import Workload, spec


class Heat(Workload):
    """One explicit step of the 2-D heat equation, the same 5-point stencil written in two forms.

    Both forms have periodic boundaries and equal results. `slices` pads the grid once and takes
    shifted views of it; `roll` concatenates two pieces for each of the four neighbors. The
    difference shows how much of the way a stencil is written survives compilation.
    """

    sweep = {"size": [64, 512], "form": ["slices", "roll"]}
    static = ("form",)

    def inputs(self, size):
        return spec((size, size))

    @staticmethod
    def function(u, *, form):
        if form == "slices":
            p = jnp.pad(u, 1, mode="wrap")
            neighbors = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        else:
            neighbors = sum(jnp.roll(u, shift, axis) for shift in (1, -1) for axis in (0, 1))
        return u + 0.1 * (neighbors - 4 * u)
