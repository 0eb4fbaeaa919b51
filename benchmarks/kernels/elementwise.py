"""GELU and Black-Scholes, each in one pass over memory.

numexpr is not the tool here: without Intel's VML its `exp` and `tanh` call libm for every element,
and NumPy's own vectorized ones are faster, temporaries included; `erf` it does not have.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.kernels.on_cpu import error_function, exponential, threaded

_SCALE = math.sqrt(2 / math.pi)


def gelu_cpu():
    """Return GELU of a float32 vector in numba."""
    import numba

    exp = exponential()
    erf = error_function(exp)
    one, half, sqrt_half = np.float32(1), np.float32(0.5), np.float32(math.sqrt(0.5))
    # (1 + tanh(z)) / 2 = 1 / (1 + exp(-2 z)), which needs no tanh.
    linear, cubic = np.float32(-2 * _SCALE), np.float32(-2 * _SCALE * 0.044715)

    def by_tanh(x):
        y = np.empty_like(x)
        for i in numba.prange(x.size):
            v = x[i]
            y[i] = v / (one + exp(v * (linear + cubic * v * v)))
        return y

    def by_erf(x):
        y = np.empty_like(x)
        for i in numba.prange(x.size):
            v = x[i]
            y[i] = half * v * (one + erf(sqrt_half * v))
        return y

    loops = {True: threaded(by_tanh, {"contract"}), False: threaded(by_erf, {"contract"})}

    def gelu(x, *, approximate):
        return loops[approximate](x)

    return gelu


GELU_TANH = "y = x / (T(1) + exp(x * (T(-1.5957691216057308) + T(-0.07135481282737417) * x * x)))"
GELU_ERF = "y = T(0.5) * x * (T(1) + erf(T(0.7071067811865476) * x))"


def gelu_gpu():
    """Return GELU in CuPy, one kernel."""
    import cupy

    kernels = {
        True: cupy.ElementwiseKernel("T x", "T y", GELU_TANH, "gelu_tanh"),
        False: cupy.ElementwiseKernel("T x", "T y", GELU_ERF, "gelu_erf"),
    }

    def gelu(x, *, approximate):
        return kernels[approximate](x)

    return gelu


def black_scholes_cpu():
    """Return the call price of float64 vectors in numba.

    Its functions are libm's, one call for every element: on one core it is no faster than NumPy,
    whose logarithm and exponential are vectorized.
    """
    import numba

    sqrt_half = math.sqrt(0.5)

    def price(spot, strike, maturity, rate, volatility):
        out = np.empty_like(spot)
        for i in numba.prange(spot.size):
            s, k, t, r, v = spot[i], strike[i], maturity[i], rate[i], volatility[i]
            deviation = v * math.sqrt(t)
            d1 = (math.log(s / k) + (r + 0.5 * v * v) * t) / deviation
            d2 = d1 - deviation
            cdf1 = 0.5 + 0.5 * math.erf(d1 * sqrt_half)
            cdf2 = 0.5 + 0.5 * math.erf(d2 * sqrt_half)
            out[i] = s * cdf1 - k * math.exp(-r * t) * cdf2
        return out

    return threaded(price, {"contract"})


BLACK_SCHOLES = """
const T deviation = volatility * sqrt(maturity);
const T drift = (rate + T(0.5) * volatility * volatility) * maturity;
const T d1 = (log(spot / strike) + drift) / deviation;
const T d2 = d1 - deviation;
price = spot * normcdf(d1) - strike * exp(-rate * maturity) * normcdf(d2);
"""


def black_scholes_gpu():
    """Return the call price in CuPy, one kernel."""
    import cupy

    inputs = "T spot, T strike, T maturity, T rate, T volatility"
    return cupy.ElementwiseKernel(inputs, "T price", BLACK_SCHOLES, "black_scholes")
