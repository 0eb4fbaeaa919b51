"""Build a small program for compile-only targets.

    python -m harness.targets.small_build gpu:h200 ...

prints an object: why nothing can be built for each target, empty where something can.
"""

from __future__ import annotations

import json
import sys

import jax
import jax.numpy as jnp

from harness.targets import topologies
from harness.targets.registry import find
from harness.targets.target import Target


def problem(target: Target) -> str:
    """Return why no `tanh` can be built for a target, for which a GPU needs libdevice, or ""."""
    try:
        topology = topologies.describe(target.name, target.description)
        given = jax.ShapeDtypeStruct((8, 8), "float32", sharding=topology.one)
        jax.jit(jnp.tanh).lower(given).compile()
    except topologies.Unusable as error:
        return str(error)
    except Exception as error:  # whatever a compiler raises
        return str(topologies.unusable(target.name, error))
    return ""


if __name__ == "__main__":
    chosen = [find(name) for name in sys.argv[1:]]
    print(json.dumps({target.name: problem(target) for target in chosen}))
