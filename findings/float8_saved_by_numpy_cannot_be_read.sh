#!/usr/bin/env bash
# numpy.save writes a float8 array into a file that numpy.load refuses.
# Most would expect: the array again, or void bytes as for bfloat16 (|V2).
# Seen: the header says '<f1', which is no dtype: ValueError at load, when the data is written and the program gone.
# Save array.view(np.uint8) and the name of the dtype.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'numpy==2.4.6' 'ml_dtypes==0.6.0'
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import ml_dtypes
import numpy as np

np.save("b.npy", np.ones(3, ml_dtypes.bfloat16))
np.save("f.npy", np.ones(3, ml_dtypes.float8_e5m2))
print(f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}")
print(f"bfloat16 comes back as {np.load('b.npy').dtype}")
assert np.load("b.npy").dtype == np.dtype("V2")
try:
    np.load("f.npy")
except ValueError as error:
    print(f"float8_e5m2: expected an array; seen: {error}")
    assert "'<f1'" in str(error)
else:
    raise SystemExit("it was read")
PYTHON
