#!/usr/bin/env bash
# numba-cuda's simulator computes in the arrays' types, not in numba's.
# Most would expect: a kernel gives in the simulator what its typing says: int32 + int32 is int64, float32 * a literal is float64.
# Seen: int32 sums wrap, and float32 times a literal is rounded to float32: a kernel can be right in one place only.
# Cast in the kernel (np.int64(a[0]), np.float32(1.1)) and both agree.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'numba==0.68.1' 'numba-cuda==0.30.4' 'numpy==2.4.6'
cd "$folder"
NUMBA_ENABLE_CUDASIM=1 "$folder/venv/bin/python" - <<'PYTHON'
import warnings

import numba
import numpy as np
from numba import cuda

warnings.simplefilter("ignore", RuntimeWarning)


def add(whole, real, out):
    out[0] = whole[0] + whole[1]
    out[1] = real[0] * 1.1


whole, real = np.array([2**31 - 1, 5], np.int32), np.array([0.1], np.float32)
simulated, typed = np.zeros(2), np.zeros(2)
cuda.jit(add)[1, 1](whole, real, simulated)
numba.njit(add)(whole, real, typed)  # the same typing as on a device
print(f"numba {numba.__version__}, numba-cuda 0.30.4, numpy {np.__version__}")
print(f"typed: {typed.tolist()}; expected: the same; simulated: {simulated.tolist()}")
assert typed[0] == 2147483652 and simulated[0] == -2147483644
assert typed[1] == float(real[0]) * 1.1 and simulated[1] == float(np.float32(real[0] * np.float32(1.1)))
PYTHON
