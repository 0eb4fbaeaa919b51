#!/usr/bin/env bash
# A jitted function that was through cloudpickle can be called, and nothing else.
# Most would expect: the copy has .lower and .trace, as Dask and Ray users need them to compile ahead of time on a worker.
# Seen: the call works; .lower, .trace and .eval_shape raise AttributeError about `_fun`.
# The same on jax 0.12.0.1 with Python 3.13. Send the plain function and jit it where it arrives.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6' 'cloudpickle==3.1.3'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import pickle

import cloudpickle
import jax

copy = pickle.loads(cloudpickle.dumps(jax.jit(lambda x: x + 1)))
result, errors = float(copy(1.0)), {}
for name in ("lower", "trace", "eval_shape"):
    try:
        getattr(copy, name)(1.0)
    except AttributeError as error:
        errors[name] = str(error)
print(f"cloudpickle {cloudpickle.__version__}, jax {jax.__version__}")
print(f"called: {result}; expected: the methods work; seen: {errors}")
assert result == 2.0 and len(errors) == 3 and all("_fun" in text for text in errors.values())
PYTHON
