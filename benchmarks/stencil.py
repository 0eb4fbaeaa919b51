"""Stencils: each element is computed from its neighbors."""

import jax.numpy as jnp

from benchmarks.kernels import stencil as kernels
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

    @staticmethod
    def baseline(xp, u, *, form):
        if form == "slices":
            p = xp.concat([u[-1:], u, u[:1]], axis=0)
            p = xp.concat([p[:, -1:], p, p[:, :1]], axis=1)
            neighbors = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        else:
            neighbors = xp.roll(u, 1, axis=0) + xp.roll(u, -1, axis=0)
            neighbors = neighbors + xp.roll(u, 1, axis=1) + xp.roll(u, -1, axis=1)
        return u + 0.1 * (neighbors - 4 * u)

    fused_cpu = staticmethod(kernels.heat_cpu)
    fused_gpu = staticmethod(kernels.heat_gpu)


class HeatPlate(Workload):
    """One step of the 2-D heat equation on a plate whose edge keeps its values, in two forms.

    `set` writes the interior into a copy of the grid, as a NumPy user would; `pad` adds a change
    that is zero on the edge. The results are equal; on a GPU, the first becomes several kernels and
    the second one.
    """

    sweep = {"size": [64, 512], "form": ["set", "pad"]}
    static = ("form",)

    def inputs(self, size):
        return spec((size, size))

    @staticmethod
    def function(u, *, form):
        middle = u[1:-1, 1:-1]
        neighbors = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        change = 0.1 * (neighbors - 4 * middle)
        return u.at[1:-1, 1:-1].set(middle + change) if form == "set" else u + jnp.pad(change, 1)

    @staticmethod
    def baseline(xp, u, *, form):
        middle = u[1:-1, 1:-1]
        neighbors = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        new = middle + 0.1 * (neighbors - 4 * middle)
        rows = xp.concat([u[1:-1, :1], new, u[1:-1, -1:]], axis=1)
        return xp.concat([u[:1], rows, u[-1:]], axis=0)

    fused_cpu = staticmethod(kernels.plate_cpu)
    fused_gpu = staticmethod(kernels.plate_gpu)
