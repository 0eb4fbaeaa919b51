"""A function that takes XLA a few tenths of a second to compile on a CPU."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 12


def subject(x: Any) -> Any:
    """Sort and scale, many times over."""
    for step in range(STEPS):
        x = jnp.sort(x, axis=step % 2) * (1 - step / 64)
    return x


def calls() -> dict[str, tuple[Callable[[Any], Any], Any, Any]]:
    """Give the jitted function, its argument and its result, by name."""
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    expected = x
    for step in range(STEPS):
        expected = np.sort(expected, axis=step % 2) * np.float32(1 - step / 64)
    return {"subject": (jax.jit(subject), x, expected)}
