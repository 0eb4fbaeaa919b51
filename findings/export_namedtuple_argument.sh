#!/usr/bin/env bash
# jax.export serialises dicts and tuples, and no namedtuple that is not registered.
# Most would expect: namedtuples are pytrees for jit without being registered, so for an export as well.
# Seen: ValueError at serialize(): register_namedtuple_serialization has to be called, in the reader as well.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6' 'flatbuffers==25.12.19'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
from typing import NamedTuple

import jax
from jax import export


class Pair(NamedTuple):
    a: object
    b: object


x = jax.ShapeDtypeStruct((3,), "float32")
exported = export.export(jax.jit(lambda pair: pair.a + pair.b))(Pair(x, x))
print(f"jax {jax.__version__}")
try:
    exported.serialize()
except ValueError as error:
    print(f"expected: bytes; seen: ValueError: {str(error)[:90]}...")
    assert "unregistered type" in str(error)
else:
    raise SystemExit("it was serialised")
export.register_namedtuple_serialization(Pair, serialized_name="Pair")
assert exported.serialize()
PYTHON
