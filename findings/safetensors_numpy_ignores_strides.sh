#!/usr/bin/env bash
# safetensors.numpy writes a transposed array with its values in another order.
# Most would expect: load(save({'a': a.T})) equals a.T, as with numpy.save; or it is refused, as safetensors.torch does.
# Seen: the shape is that of a.T, the values lie as in a: nothing is raised.
# np.asarray(jax_array.T) is contiguous; what NumPy transposed has to go through np.ascontiguousarray.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'safetensors==0.8.0' 'numpy==2.4.6'
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import safetensors
from safetensors.numpy import load, save

a = np.arange(6.0).reshape(2, 3)
seen = load(save({"a": a.T}))["a"]
print(f"safetensors {safetensors.__version__}, numpy {np.__version__}")
print(f"expected: {a.T.tolist()}; seen: {seen.tolist()}")
assert seen.shape == (3, 2) and seen.tolist() == a.reshape(3, 2).tolist() != a.T.tolist()
assert (load(save({"a": np.ascontiguousarray(a.T)}))["a"] == a.T).all()
PYTHON
