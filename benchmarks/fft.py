"""Fast Fourier transforms."""

import jax.numpy as jnp

from harness import Workload, spec


class Fft(Workload):
    """Batched 1-D FFT, complex or real, of a length that is a power of two or prime.

    XLA calls a library here, so little is compiled. A real input has about half the work of a
    complex one; a prime length has no factors to recurse on and needs another algorithm.
    """

    sweep = {"length": [1024, 1021], "dtype": ["complex64", "float32"]}

    def inputs(self, length, dtype):
        return spec((64, length), dtype)

    @staticmethod
    def function(x):
        return jnp.fft.fft(x) if jnp.iscomplexobj(x) else jnp.fft.rfft(x)

    @staticmethod
    def baseline(xp, x):
        return xp.fft.fft(x) if xp.isdtype(x.dtype, "complex floating") else xp.fft.rfft(x)
