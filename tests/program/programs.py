"""Programs whose shape on an accelerator is known, as functions of jax arrays and their specs."""

import jax
import jax.numpy as jnp
from jax import lax

SQUARE = (4096, 4096)


def stages(function, *shapes):
    """Return a function traced, lowered and compiled."""
    specs = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes or [(64, 64)]]
    traced = jax.jit(function).trace(*specs)
    lowered = traced.lower()
    return traced, lowered, lowered.compile()


def black_scholes(spot, strike, maturity):
    rate, volatility = 0.02, 0.3
    deviation = volatility * jnp.sqrt(maturity)
    d1 = (jnp.log(spot / strike) + (rate + volatility**2 / 2) * maturity) / deviation
    d2 = d1 - deviation
    discounted = strike * jnp.exp(-rate * maturity)
    cdf = jax.scipy.stats.norm.cdf
    call = spot * cdf(d1) - discounted * cdf(d2)
    return call, call - spot + discounted


def layer_norm(x):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-6)


def mse_and_gradient(prediction, target):
    return jax.value_and_grad(lambda p: jnp.mean((p - target) ** 2))(prediction)


def stencil_interior(u):
    middle = u[1:-1, 1:-1]
    neighbors = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return middle + 0.1 * (neighbors - 4 * middle)


def attention(query, key, value):
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) / jnp.sqrt(query.shape[-1])
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), value)


def n_body(positions, masses):
    offsets = positions[None, :, :] - positions[:, None, :]
    distances = jnp.sum(offsets**2, axis=-1) + 1e-3
    return jnp.sum(offsets * (masses[None, :] * distances**-1.5)[..., None], axis=1)


def scan(w, state):
    def cell(state, _):
        state = jnp.tanh(w @ state)
        return state, state

    return lax.scan(cell, state, length=256)


PROGRAMS = {
    "gelu": (lambda x: jax.nn.gelu(x, approximate=True), [SQUARE]),
    "swish": (lambda x: x * jax.nn.sigmoid(x), [SQUARE]),
    "black_scholes": (black_scholes, [(2**24,)] * 3),
    "softmax": (jax.nn.softmax, [SQUARE]),
    "softmax_16384": (jax.nn.softmax, [(1024, 16384)]),
    "softmax_32768": (jax.nn.softmax, [(512, 32768)]),
    "layer_norm": (layer_norm, [SQUARE]),
    "log_sum_exp": (lambda x: jax.nn.logsumexp(x, axis=-1), [SQUARE]),
    "variance": (lambda x: jnp.var(x, axis=-1), [SQUARE]),
    "sum_of_squares": (lambda x: jnp.sum(x * x), [SQUARE]),
    "mse_and_gradient": (mse_and_gradient, [SQUARE] * 2),
    "stencil_interior": (stencil_interior, [SQUARE]),
    "stencil_padded": (lambda u: stencil_interior(jnp.pad(u, 1)), [SQUARE]),
    "stencil_set": (lambda u: u.at[1:-1, 1:-1].set(stencil_interior(u)), [SQUARE]),
    "predict": (
        lambda w, b, x: jax.nn.relu(x @ w + b),
        [(1024, 1024), (1024,), (1024, 1024)],
    ),
    "batched_matmul": (jnp.matmul, [(65536, 16, 16)] * 2),
    "attention": (attention, [(8, 16, 1024, 64)] * 3),
    "linear_gradient": (
        lambda w, x, y: jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w),
        [(1024, 64), (4096, 1024), (4096, 64)],
    ),
    "n_body": (n_body, [(4096, 3), (4096,)]),
    "gather": (lambda table, indices: table[indices], [(2**20, 16), ((2**20,), "int32")]),
    "scatter_add": (
        lambda totals, indices, updates: totals.at[indices].add(updates),
        [(2**20,), ((2**22,), "int32"), (2**22,)],
    ),
    "power_spectrum": (lambda x: jnp.abs(jnp.fft.rfft(x)) ** 2, [SQUARE]),
    "scan": (scan, [(64, 64), (64,)]),
    "associative_scan": (lambda x: lax.associative_scan(jnp.add, x), [(256, 1024)]),
    "cumulative_sum": (lambda x: jnp.cumsum(x, axis=-1), [SQUARE]),
}
"""Each with its arguments: shapes of float32 arrays, or pairs of shape and dtype."""

SHARDED = {"sharded_matmul": (jnp.matmul, [(256, 256)] * 2)}
"""Those whose arguments are sharded by rows over all devices of a target that has several."""
