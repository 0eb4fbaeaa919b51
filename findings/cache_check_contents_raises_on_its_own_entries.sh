#!/usr/bin/env bash
# jax_compilation_cache_check_contents raises for a program that XLA compiles in more than one way.
# Most would expect: a compile of the same module by the same jaxlib on the same machine gives the same bytes, so only a bad entry raises.
# Seen: sin(x) @ x on a CPU: now and then a process raises CacheVerificationError, with an entry that is right and hits.
# The same on jax 0.12.0.1 with Python 3.13. (x + 1 never raises)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import collections
import os
import subprocess
import sys

program = """
import jax, jax.numpy as jnp, numpy as np
print(jax.jit(lambda x: jnp.sin(x) @ x)(np.ones((3, 3), "float32"))[0, 0])
"""
environment = {
    **os.environ,
    "JAX_COMPILATION_CACHE_DIR": os.path.abspath("cache"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}


def run(**more):
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment | more, capture_output=True, text=True)
    return "CacheVerificationError" if "CacheVerificationError" in done.stderr else done.stdout.strip()


plain = [run(), run()]
checked = collections.Counter()
for _ in range(40):
    checked[run(JAX_COMPILATION_CACHE_CHECK_CONTENTS="1")] += 1
    if len(checked) > 1:
        break
import jax

print(f"jax {jax.__version__}, CPU")
print(f"without the check: {plain}; expected: the same always; with it: {dict(checked)}")
assert plain[0] == plain[1] and checked["CacheVerificationError"] and checked[plain[0]]
PYTHON
