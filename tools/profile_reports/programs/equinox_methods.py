"""patrick-kidger/equinox#268: the bound method of each instance is jitted, and compiles again."""

import equinox as eqx
import jax
import jax.numpy as jnp


class Scaled(eqx.Module):
    """A number, and a method that uses it."""

    y: float

    def foo(self, x):
        """Return something of the number."""
        return jnp.tanh(self.y * x) + jnp.sin(x)


for number in range(4):
    model = Scaled(float(number + 1))
    result = jax.jit(model.foo)(jnp.arange(64.0))  # HERE
print(float(result.sum()))
