#!/usr/bin/env bash
# jax.device_put compiles where it changes how an array lies on the devices.
# Most would expect: 0 compiles: data is moved, nothing is computed.
# Seen: one for each pair of layouts, as with_sharding_constraint outside jit; putting a NumPy array costs none.
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


import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
rows, columns = NamedSharding(mesh, P("i")), NamedSharding(mesh, P(None, "i"))
host = np.ones((4, 4), "float32")
one = jax.device_put(host)
seen = [
    count(lambda: jax.device_put(host, rows)),
    count(lambda: jax.device_put(one, rows)),
    count(lambda: jax.device_put(one, columns)),
    count(lambda: jax.device_put(one, columns)),
]
print(f"jax {jax.__version__}, 2 CPU devices")
print(f"from NumPy, from one device to rows, to columns, again; expected 0; seen: {seen}")
assert seen == [0, 1, 1, 0]
PYTHON
