#!/usr/bin/env bash
# A loop that begins with 0 runs its body twice while JAX traces it; one that begins with 0.0 does so for bfloat16 alone.
# Most would expect: once; or twice for every Python number, since all of them begin weakly typed.
# Seen: scan over float32: once from 0.0, twice from 0; over bfloat16: twice from both. fori_loop is the same.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check "jax==${JAX:-0.10.2}" "jaxlib==${JAX:-0.10.2}" 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp


def runs(begin, dtype, loop):
    """How often the body runs until the loop is traced."""
    count = 0

    def add(carry, x):
        nonlocal count
        count += 1
        return carry + x, None

    def program(xs):
        if loop == "scan":
            return jax.lax.scan(add, begin, xs)[0]
        return jax.lax.fori_loop(0, 8, lambda i, carry: add(carry, xs[i])[0], begin)

    jax.jit(program).trace(jnp.ones(8, dtype))
    return count


print(f"jax {jax.__version__}")
for loop in ("scan", "fori_loop"):
    seen = {
        (repr(begin), dtype): runs(begin, dtype, loop)
        for begin in (0, 0.0)
        for dtype in ("float32", "bfloat16")
    }
    print(f"{loop}: times that the body ran, by first carry and dtype: {seen}")
    assert seen == {
        ("0", "float32"): 2,
        ("0", "bfloat16"): 2,
        ("0.0", "float32"): 1,
        ("0.0", "bfloat16"): 2,
    }
    assert runs(jnp.zeros((), "bfloat16"), "bfloat16", loop) == 1
PYTHON
