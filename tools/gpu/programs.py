"""The programs of the checks, for JAX and CuPy alike, and a small clock."""

import math
import statistics
import time


def gelu(xp, x):
    """One kernel when fused, nine when not."""
    return 0.5 * x * (1 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def softmax(xp, x):
    """Two reductions over rows."""
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def layernorm(xp, x):
    """Two reductions over rows, of which the second needs the first."""
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def logsumexp(xp, x):
    """Which XLA does not fuse into one kernel."""
    greatest = xp.max(x, axis=-1, keepdims=True)
    return greatest + xp.log(xp.sum(xp.exp(x - greatest), axis=-1, keepdims=True))


def predict(xp, w, b, x):
    """A matrix product with an epilogue."""
    return xp.maximum(x @ w + b, 0)


def products(xp, x, w):
    """Sixteen small products in a row: nothing but launches."""
    for _ in range(16):
        x = x @ w
    return x


def product(xp, x, w):
    """One matrix product."""
    return x @ w


def square(xp, x):
    """One kernel when fused, two when not."""
    return x * x + 1


ROWS = [((4096, 4096), "float32")]

PROGRAMS = {
    gelu: ROWS,
    softmax: ROWS,
    layernorm: ROWS,
    logsumexp: ROWS,
    predict: [((1024, 1024), "float32"), ((1024,), "float32"), ((1024, 1024), "float32")],
}
"""Program to the shapes and dtypes of its arguments."""


def slope(call, wait, few=4, many=20):
    """Return seconds per call, of which dispatch, from runs of few and of many calls.

    At most 24 calls are under way at a time, because XLA lets no more than 32 be.
    """

    def run(calls):
        begin = time.perf_counter()
        for _ in range(calls):
            result = call()
        dispatched = time.perf_counter()
        wait(result)
        return time.perf_counter() - begin, dispatched - begin

    for _ in range(3):
        wait(call())
    low = statistics.median(run(few)[0] for _ in range(9))
    high = [run(many) for _ in range(9)]
    total = statistics.median(whole for whole, _ in high)
    dispatch = statistics.median(part for _, part in high)
    return {"slope_s": (total - low) / (many - few), "dispatch_s": dispatch / many}
