"""The programs of the checks, for JAX and CuPy alike, and a small clock."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

Arrays = Sequence[tuple[tuple[int, ...], str]]


def gelu(xp: Any, x: Any) -> Any:
    """One kernel when fused, nine when not."""
    return 0.5 * x * (1 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def softmax(xp: Any, x: Any) -> Any:
    """Two reductions over rows."""
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def layernorm(xp: Any, x: Any) -> Any:
    """Two reductions over rows, of which the second needs the first."""
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def logsumexp(xp: Any, x: Any) -> Any:
    """Which XLA does not fuse into one kernel."""
    greatest = xp.max(x, axis=-1, keepdims=True)
    return greatest + xp.log(xp.sum(xp.exp(x - greatest), axis=-1, keepdims=True))


def predict(xp: Any, w: Any, b: Any, x: Any) -> Any:
    """A matrix product with an epilogue."""
    return xp.maximum(x @ w + b, 0)


def products(xp: Any, x: Any, w: Any) -> Any:
    """Sixteen small products in a row: nothing but launches."""
    for _ in range(16):
        x = x @ w
    return x


ROWS: Arrays = [((4096, 4096), "float32")]

PROGRAMS: dict[str, tuple[Callable[..., Any], Arrays]] = {
    "gelu": (gelu, ROWS),
    "softmax": (softmax, ROWS),
    "layernorm": (layernorm, ROWS),
    "logsumexp": (logsumexp, ROWS),
    "predict": (
        predict,
        [((1024, 1024), "float32"), ((1024,), "float32"), ((1024, 1024), "float32")],
    ),
}


def slope(
    call: Callable[[], Any], wait: Callable[[Any], None], few: int = 4, many: int = 20
) -> dict[str, float]:
    """Return seconds per call, of which dispatch, from runs of few and of many calls.

    At most 24 calls are under way at a time, because XLA lets no more than 32 be.
    """

    def run(calls: int) -> tuple[float, float]:
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
