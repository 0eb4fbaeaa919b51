"""Four functions that compile to entries of about one size, under different names."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def calls() -> dict[str, tuple[Callable[[Any], Any], Any, Any]]:
    """Give each jitted function, its argument and its result, by name."""
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    found: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {}
    for name in ("first", "second", "third", "fourth"):

        def function(x: Any) -> Any:
            return jnp.tanh(x) * 2 + x

        function.__name__ = function.__qualname__ = name
        found[name] = (jax.jit(function), x, np.tanh(x) * 2 + x)
    return found
