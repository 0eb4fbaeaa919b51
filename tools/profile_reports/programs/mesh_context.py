"""AI-Hypercomputer/maxtext#4934: compiled ahead of time outside the run's context, and again."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


@jax.jit
def train_step(params, batch):
    """Take a step."""

    def loss(params):
        hidden = batch
        for w in params:
            hidden = jnp.tanh(hidden @ w)
        return jnp.mean(hidden**2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


place = NamedSharding(mesh, P())
params = [jax.device_put(np.eye(32, dtype=np.float32), place) for _ in range(4)]
batch = jax.device_put(np.ones((16, 32), np.float32), place)
print(train_step.lower(params, batch).compile().memory_analysis().argument_size_in_bytes)
with jax.set_mesh(mesh):
    for _ in range(3):
        params = train_step(params, batch)  # HERE
print(float(params[0].sum()))
