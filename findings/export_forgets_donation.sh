#!/usr/bin/env bash
# An argument that jit donates is not donated any more when the export is called.
# Most would expect: the exported program donates as the jitted one: half the memory of a training step.
# Seen: the argument lives on; with jax.jit(exported.call, donate_argnums=0) it is donated again.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp
from jax import export

step = jax.jit(lambda x: x + 1, donate_argnums=0)
exported = export.export(step)(jax.ShapeDtypeStruct((300,), "float32"))
deleted = []
for call in (step, exported.call, jax.jit(exported.call, donate_argnums=0)):
    x = jnp.ones(300)
    call(x).block_until_ready()
    deleted.append(x.is_deleted())
print(f"jax {jax.__version__}")
print(f"deleted after the call; expected: all; jitted {deleted[0]}, exported {deleted[1]}, jitted again {deleted[2]}")
assert deleted == [True, False, True]
PYTHON
