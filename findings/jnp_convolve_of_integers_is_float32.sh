#!/usr/bin/env bash
# jnp.convolve of integers is float32; NumPy's is of integers.
# Most would expect: int32 in, int32 out: above 2**24 float32 loses units.
# Seen: float32 for int8 and int32: a NumPy baseline differs in dtype, and in values above 16,777,216.
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

a = np.array([16_777_217, 1], np.int32)
ours, numpys = jnp.convolve(a, np.array([1, 0], np.int32)), np.convolve(a, np.array([1, 0], np.int32))
print(f"jax {jax.__version__}, numpy {np.__version__}")
print(f"expected: {numpys.dtype} {numpys[0]}; seen: {ours.dtype} {float(ours[0]):.0f}")
assert numpys.dtype == np.int32 and ours.dtype == np.float32 and float(ours[0]) == 16_777_216
PYTHON
