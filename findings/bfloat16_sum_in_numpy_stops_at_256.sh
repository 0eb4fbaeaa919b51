#!/usr/bin/env bash
# NumPy adds bfloat16 (ml_dtypes) in bfloat16: a sum of 1,000 ones is 256.
# Most would expect: 1000, as JAX says, or float32 as NumPy uses inside for its own float16.
# Seen: sum 256, mean 0.256, and pandas' describe() raises NotImplementedError: a NumPy baseline in bfloat16 is no baseline.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6' 'ml_dtypes==0.6.0' 'pandas==3.1.1'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pandas as pd

ones = np.ones(1000, ml_dtypes.bfloat16)
column = pd.DataFrame({"v": ones})
try:
    column.describe()
    described = "described"
except NotImplementedError as error:
    described = f"NotImplementedError: {error}"
seen = float(ones.sum()), float(column.v.mean()), float(jnp.asarray(ones).sum()), float(np.ones(1000, np.float16).sum())
print(f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}, pandas {pd.__version__}")
print(f"expected 1000; numpy {seen[0]}, pandas' mean {seen[1]:.3f}, JAX {seen[2]}, numpy's float16 {seen[3]}; {described}")
assert seen[0] == 256 and round(seen[1], 3) == 0.256 and seen[2:] == (1000, 1000)
assert described == "NotImplementedError: bfloat16"
PYTHON
