"""AI-Hypercomputer/maxtext#4174: compiled ahead of time for a batch that is not sharded, and again.

The batch of the run is sharded over the devices.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 2)
mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


@jax.jit
def train_step(params, batch):
    """Take a step."""

    def loss(params):
        hidden = batch
        for w in params:
            hidden = jnp.tanh(hidden @ w)
        return jnp.mean(hidden**2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


everywhere = NamedSharding(mesh, P())
params = [jax.device_put(np.eye(32, dtype=np.float32), everywhere) for _ in range(4)]
shaped_batch = jax.ShapeDtypeStruct((16, 32), np.float32)
compiled = train_step.lower(params, shaped_batch).compile()
print(compiled.cost_analysis()["flops"])
for step in range(3):
    batch = np.full((16, 32), step, np.float32)
    params = train_step(params, jax.device_put(batch, NamedSharding(mesh, P("data"))))  # HERE
print(float(params[0].sum()))
