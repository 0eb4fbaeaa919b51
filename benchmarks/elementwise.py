"""Elementwise chains: no data moves between elements, so each should become one fused loop."""

import math

import jax
import jax.numpy as jnp

from benchmarks.kernels import elementwise as kernels
from harness import Workload, spec


class Gelu(Workload):
    """GELU, exact (erf) or approximate (tanh): cost per element against the cost of a call.

    The smallest size is dominated by dispatch and the largest by arithmetic and memory traffic.
    The flag selects between two different programs at trace time.
    """

    sweep = {"size": [2**10, 2**16, 2**20], "approximate": [True, False]}
    static = ("approximate",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x, *, approximate):
        return jax.nn.gelu(x, approximate=approximate)

    @staticmethod
    def baseline(xp, x, *, approximate):
        if approximate:
            scale = math.sqrt(2 / math.pi)
            return x * (0.5 + 0.5 * xp.tanh(x * (scale + scale * 0.044715 * (x * x))))
        return x * (0.5 + 0.5 * xp.erf(x * math.sqrt(0.5)))

    fused_cpu = staticmethod(kernels.gelu_cpu)
    fused_gpu = staticmethod(kernels.gelu_gpu)


class BlackScholes(Workload):
    """Black-Scholes call price in double precision: a long elementwise chain over five inputs.

    Logarithm, exponential, square root and two normal distribution functions should still fuse
    into a single loop, which does far more arithmetic per byte than `Gelu`.
    """

    sweep = {"size": [2**10, 2**16]}
    x64 = True

    def inputs(self, size):
        spot = spec((size,), "float64", low=50.0, high=150.0)
        strike = spec((size,), "float64", low=50.0, high=150.0)
        maturity = spec((size,), "float64", low=0.1, high=2.0)
        rate = spec((size,), "float64", low=0.0, high=0.05)
        volatility = spec((size,), "float64", low=0.1, high=0.5)
        return spot, strike, maturity, rate, volatility

    @staticmethod
    def function(spot, strike, maturity, rate, volatility):
        deviation = volatility * jnp.sqrt(maturity)
        d1 = (jnp.log(spot / strike) + (rate + volatility**2 / 2) * maturity) / deviation
        d2 = d1 - deviation
        discounted = strike * jnp.exp(-rate * maturity)
        return spot * jax.scipy.stats.norm.cdf(d1) - discounted * jax.scipy.stats.norm.cdf(d2)

    @staticmethod
    def baseline(xp, spot, strike, maturity, rate, volatility):
        deviation = volatility * xp.sqrt(maturity)
        drift = (rate + volatility * volatility / 2) * maturity
        d1 = (xp.log(spot / strike) + drift) / deviation
        cdf1 = 0.5 + 0.5 * xp.erf(d1 * math.sqrt(0.5))
        cdf2 = 0.5 + 0.5 * xp.erf((d1 - deviation) * math.sqrt(0.5))
        return spot * cdf1 - strike * xp.exp(-rate * maturity) * cdf2

    fused_cpu = staticmethod(kernels.black_scholes_cpu)
    fused_gpu = staticmethod(kernels.black_scholes_gpu)
