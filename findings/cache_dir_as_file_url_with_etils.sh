#!/usr/bin/env bash
# With etils installed (orbax, flax and tensorflow-datasets bring it) a cache directory file:///... stops every compile.
# Most would expect: the folder that the URL names, as for gs:// and s3://; or JAX's warning that the cache could not be written.
# Seen: KeyError 'file://' out of the jitted call: the program ends. Without etils JAX makes a folder named `file:` where it runs.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6' 'etils[epath]==1.15.0'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import os
import subprocess
import sys

program = "import jax; print(jax.jit(lambda x: x + 1)(1.0))"
environment = {
    **os.environ,
    "JAX_COMPILATION_CACHE_DIR": "file://" + os.path.abspath("cache"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}


def run(*options):
    return subprocess.run([sys.executable, *options, "-c", program], env=environment, capture_output=True, text=True)


done = run()
print("jax 0.10.2, etils 1.15.0")
print(f"expected 2.0; exit {done.returncode}: {done.stderr.strip().splitlines()[-4:]}")
assert done.returncode == 1 and "KeyError: 'file://'" in done.stderr
subprocess.run([sys.executable, "-m", "pip", "uninstall", "--yes", "--quiet", "etils"], check=True)
assert run().stdout.strip() == "2.0" and os.path.isdir("file:")
PYTHON
