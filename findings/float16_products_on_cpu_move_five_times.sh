#!/usr/bin/env bash
# By XLA's count a float16 product on a CPU moves five times the bytes of an int16 or bfloat16 one.
# Most would expect: half of float32's bytes.
# Seen: 2.5 times float32's: the product is done in float32, and the conversions are counted (and run).
# bfloat16 is 2.5 on jax 0.10.2 and 0.5 on 0.12.0.1. float64 is float32 here (x64 is off).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax


def moved(dtype):
    x = jax.ShapeDtypeStruct((64, 64), dtype)
    return jax.jit(lambda a, b: a @ b).lower(x, x).compile().cost_analysis()["bytes accessed"]


seen = {dtype: moved(dtype) / moved("float32") for dtype in ("float16", "bfloat16", "float64")}
print(f"jax {jax.__version__}, CPU")
print(f"bytes over float32's; expected 0.5, 0.5, 2; seen: {seen}")
assert seen["float16"] == 2.5 and seen["float64"] == 1.0, seen
PYTHON
