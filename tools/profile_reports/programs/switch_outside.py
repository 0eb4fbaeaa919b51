"""jax-ml/jax#5210: `lax.switch` outside jit with branches made anew compiles in every call."""

import jax
import numpy as np


def do_thing(number):
    """Return one of two arrays."""
    x, y = np.full(100, number, np.float32), np.zeros(100, np.float32)
    return jax.lax.switch(number % 2, [lambda: x * 2, lambda: y - 1])  # HERE


total = 0.0
for number in range(8):
    total += float(do_thing(number).sum())
print(total)
