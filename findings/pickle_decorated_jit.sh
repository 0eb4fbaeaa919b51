#!/usr/bin/env bash
# A function under @jax.jit at the top of a module cannot be pickled by pickle.
# Most would expect: it is found again by its module and name, as any function, also one under functools.cache.
# Seen: PicklingError: the wrapped function is not what its name stands for. multiprocessing needs the undecorated one.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import pickle
import sys
from pathlib import Path

Path("steps.py").write_text(
    "import functools, jax\n\n"
    "@jax.jit\ndef jitted(x):\n    return x + 1\n\n"
    "@functools.cache\ndef cached(x):\n    return x + 1\n"
)
sys.path.insert(0, ".")
import jax
import steps

print(f"jax {jax.__version__}")
assert pickle.loads(pickle.dumps(steps.cached)) is steps.cached
try:
    pickle.dumps(steps.jitted)
except pickle.PicklingError as error:
    print(f"expected: as functools.cache's; seen: {error}")
else:
    raise SystemExit("it was pickled")
PYTHON
