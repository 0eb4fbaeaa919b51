#!/usr/bin/env bash
# XLA counts n * ceil(log2 n) flops for a sort of n, and -1 for top_k.
# Most would expect: 0: a sort compares and does no arithmetic (a cumsum or max is counted by its additions or comparisons).
# Seen: 10,240 flops for 1,024 floats; with jax.lax.top_k all is -1, also where other work stands beside it one is missing.
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


def flops(function, n):
    x = jax.ShapeDtypeStruct((n,), "float32")
    return jax.jit(function).lower(x).compile().cost_analysis()["flops"]


seen = [flops(jnp.sort, n) for n in (1024, 4096)], flops(lambda x: jax.lax.top_k(x, 5)[0], 1024)
print(f"jax {jax.__version__}, CPU")
print(f"expected: 0; sorts of 1024 and 4096: {seen[0]}; top_k: {seen[1]}")
assert seen == ([1024 * 10, 4096 * 12], -1)
PYTHON
