"""Bodies that attract each other."""

import jax.numpy as jnp
from jax import lax

from benchmarks.kernels import nbody as kernels
from harness import Workload, spec


class NBody(Workload):
    """Accelerations between all pairs of bodies, written with a matrix of pairs.

    The work grows with the square of the count, and so do the intermediate results, unless the
    compiler fuses the differences into the sum over them: then only the bodies are read.
    """

    sweep = {"bodies": [128, 512]}

    def inputs(self, bodies):
        return spec((3, bodies)), spec((bodies,), low=0.5, high=1.5)

    @staticmethod
    def function(positions, masses):
        offsets = positions[:, None, :] - positions[:, :, None]
        inverse = lax.rsqrt(jnp.sum(offsets * offsets, axis=0) + 0.01)
        return jnp.sum(offsets * (masses * inverse**3), axis=-1)

    @staticmethod
    def baseline(xp, positions, masses):
        offsets = positions[:, None, :] - positions[:, :, None]
        squared = xp.sum(offsets * offsets, axis=0) + 0.01
        return xp.sum(offsets * (masses / (squared * xp.sqrt(squared))), axis=-1)

    fused_cpu = staticmethod(kernels.accelerations_cpu)
    fused_gpu = staticmethod(kernels.accelerations_gpu)
