#!/usr/bin/env bash
# jnp.einsum outside jit is compiled again for other letters, not for other spaces.
# Most would expect: ij,jk->ik and ab,bc->ac are one program: opt_einsum makes the same contraction of both.
# Seen: one compile each, while 'ij, jk -> ik' and the implicit 'ij,jk' are found again.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6' 'opt_einsum==3.4.0'
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

a = jnp.ones((3, 3))
seen = [count(lambda: jnp.einsum(way, a, a)) for way in ("ij,jk->ik", "ij, jk -> ik", "ij,jk", "ab,bc->ac")]
print(f"jax {jax.__version__}")
print(f"expected 1, 0, 0, 0; seen: {seen}")
assert seen[0] == 1 and seen[3] == 1
PYTHON
