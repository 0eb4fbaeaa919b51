#!/usr/bin/env bash
# v + 1, v + 1., 1 + v, 1. + v and v + np.float32(1) are five programs outside jit.
# Most would expect: one addition, compiled once: the types are equal after promotion.
# Seen: five compiles; a jnp.float32(1) then takes the last one's. Each costs some milliseconds, in every process.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
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

v = jnp.asarray(np.arange(6.0, dtype="float32"))
one = jnp.float32(1)
ways = [lambda: v + 1, lambda: v + 1.0, lambda: 1 + v, lambda: 1.0 + v, lambda: v + np.float32(1), lambda: v + one]
seen = [count(way) for way in ways]
print(f"jax {jax.__version__}")
print(f"expected: 1 and then 0; seen: {seen}")
assert seen == [1, 1, 1, 1, 1, 0]
PYTHON
