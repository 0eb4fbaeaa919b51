#!/usr/bin/env bash
# jax.export's serialize() needs flatbuffers, which JAX does not ask for.
# Most would expect: `pip install jax` brings what its stable API needs.
# Seen: ImportError at serialize(), when tracing and lowering are done; exporting and calling work without.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import importlib.util
from importlib.metadata import requires

import jax
from jax import export

exported = export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct((3,), "float32"))
asked = any("flatbuffers" in line for line in (requires("jax") or []) if "extra" not in line)
print(f"jax {jax.__version__}")
assert importlib.util.find_spec("flatbuffers") is None and not asked
try:
    exported.serialize()
except ImportError as error:
    print(f"expected: bytes; seen: ImportError: {error}")
else:
    raise SystemExit("it was serialised")
PYTHON
