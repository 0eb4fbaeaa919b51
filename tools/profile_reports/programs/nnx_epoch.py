"""google/flax#5548: `nnx.jit` compiles each epoch, as model and optimizer are made anew."""

import jax.numpy as jnp
import optax
from flax import nnx


class Discriminator(nnx.Module):
    """Two layers."""

    def __init__(self, rngs):
        self.first = nnx.Linear(8, 32, rngs=rngs)
        self.last = nnx.Linear(32, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.first(x)))


@nnx.jit
def train_one_epoch(model, optimizer, x):
    """Take one step."""

    def loss(model):
        return jnp.mean((model(x) - 1.0) ** 2)

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


rngs = nnx.Rngs(0)
x = jnp.ones((16, 8))
for _ in range(4):
    model = Discriminator(rngs)
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    value = train_one_epoch(model, optimizer, x)  # HERE
print(float(value))
