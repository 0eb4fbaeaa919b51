#!/usr/bin/env bash
# What was compiled for a float32 array takes a Python float, and no int, bool or float16.
# Most would expect: TypeError: a Python float is weakly typed, and jit itself builds another program for it.
# Seen: called, also with numpy.float64, which is rounded; an int raises. Results can have another dtype than jit's.
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
import numpy as np


def double(x):
    return x * jnp.float16(2)


compiled = jax.jit(double).lower(jax.ShapeDtypeStruct((), "float32")).compile()
taken, refused = [], []
for value in (1.5, np.float64(1.1), 1, True, np.float16(1)):
    try:
        compiled(value)
        taken.append(type(value).__name__)
    except TypeError:
        refused.append(type(value).__name__)
dtypes = str(jax.jit(double)(1.5).dtype), str(compiled(1.5).dtype)
print(f"jax {jax.__version__}")
print(f"expected: all refused; taken {taken}, refused {refused}; dtype by jit {dtypes[0]}, compiled {dtypes[1]}")
assert taken == ["float", "float64"] and refused == ["int", "bool", "float16"]
assert dtypes == ("float16", "float32")
PYTHON
