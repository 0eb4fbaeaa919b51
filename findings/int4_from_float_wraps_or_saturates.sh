#!/usr/bin/env bash
# A float turned into int4 wraps in NumPy (ml_dtypes), saturates in XLA.
# Most would expect: astype gives the same in both, as it does for int32 to int4.
# Seen: 8.0 is -8 in NumPy and 7 in JAX, 100.0 is 4 and 7: quantised weights checked against NumPy differ.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6' 'ml_dtypes==0.6.0'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

values = np.array([7.6, 8.0, -9.0, 100.0], np.float32)
numpys = values.astype(ml_dtypes.int4).astype(int).tolist()
jaxs = np.asarray(jnp.asarray(values).astype("int4")).astype(int).tolist()
whole = np.array([8, 100], np.int32)
print(f"jax {jax.__version__}, ml_dtypes {ml_dtypes.__version__}")
print(f"{values.tolist()} as int4; expected: equal; NumPy {numpys}, JAX {jaxs}")
assert numpys == [7, -8, 7, 4] and jaxs == [7, 7, -8, 7]
assert whole.astype(ml_dtypes.int4).astype(int).tolist() == np.asarray(jnp.asarray(whole).astype("int4")).astype(int).tolist()
PYTHON
