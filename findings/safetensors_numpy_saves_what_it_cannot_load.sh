#!/usr/bin/env bash
# safetensors.numpy (and .flax) saves bfloat16 and cannot load it.
# Most would expect: load(save(arrays)) gives the arrays back, or save refuses.
# Seen: save writes BF16, which other readers take; load ends with KeyError: 'BF16'. The same for float8.
# The same on jax 0.12.0.1 with Python 3.13. Save the bits (array.view(np.uint16)), or read with torch's loader.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6' 'safetensors==0.8.0'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax.numpy as jnp
import safetensors
from safetensors import flax, numpy

errors = []
for module, array in ((numpy, __import__("numpy").ones(3, jnp.bfloat16)), (flax, jnp.ones(3, "bfloat16"))):
    data = module.save({"a": array})
    assert b'"dtype":"BF16"' in data
    try:
        module.load(data)
    except KeyError as error:
        errors.append(str(error))
print(f"safetensors {safetensors.__version__}")
print(f"expected: the arrays again; seen: KeyError {errors}")
assert len(errors) == 2 and all("BF16" in text for text in errors)
PYTHON
