#!/usr/bin/env bash
# XLA_FLAGS that name a flag at its default value give every program another cache key.
# Most would expect: the same key: what XLA does is the same, bit by bit.
# Seen: a miss and a second entry, for instance after a script begins to spell a default out.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import os
import subprocess
import sys

program = """
import jax, numpy as np
hits = []
jax.monitoring.register_event_listener(lambda name, **more: hits.append(1) if name.endswith("/cache_hits") else None)
jax.jit(lambda x: x * 3)(np.ones(3, "float32"))
print(len(hits))
"""
environment = {
    **os.environ,
    "JAX_COMPILATION_CACHE_DIR": os.path.abspath("cache"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}


def hits(**more):
    command = [sys.executable, "-c", program]
    return int(subprocess.run(command, env=environment | more, check=True, capture_output=True, text=True).stdout)


seen = hits(), hits(), hits(XLA_FLAGS="--xla_cpu_enable_fast_math=false")
print("jax 0.10.2, CPU")
print(f"hits of a first run, a second, and one with the default spelled out; expected 0, 1, 1; seen: {seen}")
assert seen == (0, 1, 0)
PYTHON
