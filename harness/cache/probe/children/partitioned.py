"""A function with a partitioning rule of its own, over two devices."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec


@custom_partitioning
def doubled(x: Any) -> Any:
    """Give 2 tanh(x)."""
    return jnp.tanh(x) * 2


def partition(mesh: Any, arguments: Any, result: Any) -> Any:
    """Keep the argument's sharding."""
    sharding = arguments[0].sharding
    return mesh, lambda x: jnp.tanh(x) * 2, sharding, (sharding,)


doubled.def_partition(
    partition=partition,
    infer_sharding_from_operands=lambda mesh, arguments, result: arguments[0].sharding,
    sharding_rule="i -> i",
)


def calls() -> dict[str, tuple[Callable[[Any], Any], Any, Any]]:
    """Give the jitted function, its argument and its result, by name."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("i",))
    split = NamedSharding(mesh, PartitionSpec("i"))

    def subject(x: Any) -> Any:
        return doubled(x)

    x = np.linspace(-1, 1, 8, dtype=np.float32)
    return {"subject": (jax.jit(subject, in_shardings=split), x, np.tanh(x) * 2)}
