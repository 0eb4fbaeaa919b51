#!/usr/bin/env bash
# A shard_map that is called outside jit compiles at each call, also where what it maps is jitted.
# Most would expect: it is built at the first call; jitting the mapped function keeps it.
# Seen: 7 programs a call, 3 with the function jitted, none with jax.jit around the shard_map.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=2 "$folder/venv/bin/python" - <<'PYTHON'
import jax

compiles = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **more: compiles.append(name)
    if name == "/jax/core/compile/backend_compile_duration"
    else None
)


def count(call):
    compiles.clear()
    call()
    return len(compiles)


import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))


def mapped(function):
    return jax.shard_map(function, mesh=mesh, in_specs=P("i"), out_specs=P("i"))


def step(x):
    return jnp.sin(x) + jnp.cos(x) * 2


x = np.ones((4, 4), "float32")
seen = {}
for name, call in {"plain": mapped(step), "jitted inside": mapped(jax.jit(step)), "jitted outside": jax.jit(mapped(step))}.items():
    seen[name] = [count(lambda: call(x)) for _ in range(4)][1:]
print(f"jax {jax.__version__}, 2 CPU devices")
print(f"compiles of the second to fourth call; expected 0; seen: {seen}")
assert all(seen["plain"]) and all(seen["jitted inside"]) and not any(seen["jitted outside"])
PYTHON
