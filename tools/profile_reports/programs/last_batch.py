"""patrick-kidger/diffrax#111: the last batch is smaller, and `make_step` compiles again."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


@eqx.filter_jit
def make_step(model, batch):
    """Take a step of gradient descent."""

    def loss(model):
        return jnp.mean((jax.vmap(model)(batch) - 1.0) ** 2)

    value, grads = eqx.filter_value_and_grad(loss)(model)
    return eqx.apply_updates(model, jax.tree.map(lambda g: -0.01 * g, grads)), value


data = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
model = eqx.nn.MLP(4, 1, 32, 2, key=jax.random.key(0))
for _ in range(2):
    for start in range(0, len(data), 32):
        model, value = make_step(model, data[start : start + 32])  # HERE
print(float(value))
