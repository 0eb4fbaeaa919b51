#!/usr/bin/env bash
# Static arguments (1,), (1.0,) and (True,) are one program: the first one's types win.
# Most would expect: a static 1 and 1.0 are told apart by jit (they are), so what holds them as well.
# Seen: an integer array times 1.0 stays int32 if the function was called with (1,) before, and is float32 otherwise.
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

x = jnp.arange(3)


def fresh():
    return jax.jit(lambda x, factors: x * factors[0], static_argnums=1)


both = fresh()
after = str(both(x, (1,)).dtype), str(both(x, (1.0,)).dtype)
alone = str(fresh()(x, (1.0,)).dtype)
plain = jax.jit(lambda x, factor: x * factor, static_argnums=1)
numbers = str(plain(x, 1).dtype), str(plain(x, 1.0).dtype)
print(f"jax {jax.__version__}")
print(f"of (1.0,) alone {alone}; after (1,): {after[1]}; of the number 1.0 after 1: {numbers[1]}")
assert (after, alone, numbers) == (("int32", "int32"), "float32", ("int32", "float32"))
PYTHON
