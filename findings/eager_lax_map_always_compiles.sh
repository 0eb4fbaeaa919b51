#!/usr/bin/env bash
# jax.lax.map outside jit compiles at every call, with the same function too; scan does not.
# Most would expect: one compile, then none, as with jax.lax.scan and jax.lax.while_loop of the same functions.
# Seen: map: 1, 1, 1, 1; fori_loop with other Python bounds: 1 each; scan: 1, 0, 0, 0.
# The same on jax 0.11.2 and 0.12.0.1. Jit the function that calls it.
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


def double(x):
    return x * 2


def step(carry, x):
    return carry, x * 2


def body(i, x):
    return x + i


v = jnp.asarray(np.arange(6.0, dtype="float32"))
maps = [count(lambda: jax.lax.map(double, v)) for _ in range(4)]
scans = [count(lambda: jax.lax.scan(step, 0.0, v)) for _ in range(4)]
loops = [count(lambda: jax.lax.fori_loop(0, n, body, v)) for n in (3, 4, 5)]
jitted = jax.jit(lambda n, x: jax.lax.fori_loop(0, n, body, x))
inside = [count(lambda: jitted(n, v)) for n in (3, 4, 5)]
print(f"jax {jax.__version__}")
print(f"expected 1, 0, 0, 0; map {maps}, scan {scans}; fori_loop {loops}, in jit with n an argument {inside}")
assert (maps, scans, loops, inside) == ([1] * 4, [1, 0, 0, 0], [1, 1, 1], [1, 0, 0])
PYTHON
