#!/usr/bin/env bash
# XLA's cost analysis counts a product of complex matrices as one of real ones.
# Most would expect: four real products and two additions for each complex one: four times the flops of float32.
# Seen: 64 x 64: 524,288 flops for float32 and for complex64. A roofline of an FFT or quantum code is off by four.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax


def flops(dtype):
    x = jax.ShapeDtypeStruct((64, 64), dtype)
    return jax.jit(lambda a, b: a @ b).lower(x, x).compile().cost_analysis()["flops"]


seen = {dtype: flops(dtype) for dtype in ("float32", "complex64")}
print(f"jax {jax.__version__}, CPU")
print(f"expected: complex64 four times float32; seen: {seen}")
assert seen == {"float32": 524_288, "complex64": 524_288}
PYTHON
