#!/usr/bin/env bash
# jax.Array.nbytes of int4 counts a byte each; XLA's program takes half.
# Most would expect: one number for one array.
# Seen: 1,000 elements: nbytes 1000, argument_size_in_bytes 500. Bytes by the one over bandwidth by the other is off by two.
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

array = jnp.zeros(1000, "int4")
xla = jax.jit(lambda x: x + 1).lower(array).compile().memory_analysis().argument_size_in_bytes
print(f"jax {jax.__version__}")
print(f"expected: equal; nbytes {array.nbytes}, XLA's argument {xla}")
assert (array.nbytes, xla) == (1000, 500)
PYTHON
