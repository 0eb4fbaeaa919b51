"""jax-ml/jax#14655: the indices of a sparse matrix are closed over, and folded while compiling."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO

n = 400_000
indices = jnp.asarray(np.stack([np.arange(n), np.arange(n)[::-1]], axis=1))


@jax.jit
def product(x):
    """Return the sum of a sparse matrix times a vector."""
    matrix = BCOO((jnp.ones(n), indices), shape=(n, n), unique_indices=True)
    return (matrix @ (jnp.ones(n) / x)).sum()  # HERE


print(float(product(1.0)))
