"""The smallest program: one function."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


# A comment above the function.
def subject(x: Any) -> Any:
    """Give 2 tanh(x) + x."""
    return jnp.tanh(x) * 2 + x


def calls() -> dict[str, tuple[Callable[[Any], Any], Any, Any]]:
    """Give the jitted function, its argument and its result, by name."""
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    return {"subject": (jax.jit(subject), x, np.tanh(x) * 2 + x)}
