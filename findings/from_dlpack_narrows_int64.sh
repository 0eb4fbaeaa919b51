#!/usr/bin/env bash
# jnp.from_dlpack of an int64 array gives int32, and wraps what does not fit.
# Most would expect: no copy and the same type (that is what DLPack is for), or an error as long as x64 is off.
# Seen: 2**40 + 5 becomes 5, float64 becomes float32; nothing is raised or warned of.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import warnings

import jax
import jax.numpy as jnp
import numpy as np

warnings.simplefilter("error")
seen = jnp.from_dlpack(np.array([2**40 + 5, 1]))
print(f"jax {jax.__version__}, numpy {np.__version__}")
print(f"expected int64 [1099511627781, 1]; seen: {seen.dtype} {seen.tolist()}")
assert seen.dtype == "int32" and seen.tolist() == [5, 1]
PYTHON
