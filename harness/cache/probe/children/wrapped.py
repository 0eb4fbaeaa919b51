"""The function of plain.py, wrapped as a decorator of the user's would wrap it."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def decorated(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap a function and change nothing."""

    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


@decorated
def subject(x: Any) -> Any:
    """Give 2 tanh(x) + x."""
    return jnp.tanh(x) * 2 + x


def calls() -> dict[str, tuple[Callable[[Any], Any], Any, Any]]:
    """Give the jitted function, its argument and its result, by name."""
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    return {"subject": (jax.jit(subject), x, np.tanh(x) * 2 + x)}
