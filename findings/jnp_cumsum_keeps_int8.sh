#!/usr/bin/env bash
# jnp.cumsum of int8 stays int8 and overflows; jnp.sum and jnp.cumulative_sum do not.
# Most would expect: the last of cumsum is the sum, as in NumPy, where both are int64.
# Seen: 200 ones: sum 200 (int32), cumsum ends at -56 (int8), cumulative_sum at 200 (int32). The same for cumprod.
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

ones = jnp.ones(200, "int8")
seen = int(jnp.sum(ones)), int(jnp.cumsum(ones)[-1]), int(jnp.cumulative_sum(ones)[-1])
print(f"jax {jax.__version__}, numpy {np.__version__}")
print(f"expected 200 three times; sum, cumsum, cumulative_sum: {seen}; NumPy's cumsum {np.cumsum(np.ones(200, 'int8'))[-1]}")
assert seen == (200, -56, 200) and np.cumsum(np.ones(200, "int8"))[-1] == 200
PYTHON
