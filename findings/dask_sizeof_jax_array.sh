#!/usr/bin/env bash
# Dask takes a JAX array of 4 MB for one of less than 1 kB.
# Most would expect: dask.sizeof gives about nbytes, as it does for NumPy's arrays.
# Seen: 696 bytes (jax 0.10.2) for 4,000,000: spilling, and the choice of a worker, work with that.
# The same on jax 0.12.0.1 with Python 3.13. (248 bytes there)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6' 'dask==2026.8.0'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import dask
import jax
import jax.numpy as jnp
import numpy as np
from dask.sizeof import sizeof

array = jnp.ones(1_000_000)
seen = sizeof(array), sizeof(np.asarray(array))
print(f"dask {dask.__version__}, jax {jax.__version__}")
print(f"nbytes {array.nbytes:,}; expected about that; sizeof: {seen[0]:,}, of the same in NumPy {seen[1]:,}")
assert seen[0] < 10_000 and seen[1] == array.nbytes
PYTHON
