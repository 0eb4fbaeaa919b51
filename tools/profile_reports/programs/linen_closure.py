"""google/flax#386: a model is jitted over its parameters, and again for each update of them."""

import jax
import jax.numpy as jnp
from flax import linen as nn


class Net(nn.Module):
    """Two layers."""

    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(nn.relu(nn.Dense(32)(x)))


net = Net()
x = jnp.ones((16, 8))
params = net.init(jax.random.key(0), x)
for _ in range(4):
    predict = jax.jit(lambda x, params=params: net.apply(params, x))
    y = predict(x)  # HERE
    params = jax.tree.map(lambda p: p * 0.9, params)
print(float(y.sum()))
