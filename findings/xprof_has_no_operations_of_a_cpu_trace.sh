#!/usr/bin/env bash
# xprof's tables of operations are empty for a trace of JAX's on a CPU, although the trace has them.
# Most would expect: op_profile and hlo_stats list them, as both are offered for that trace.
# Seen: no rows in either; jax.profiler.ProfileData reads the operations from the same file.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check \
    "jax==${JAX:-0.10.2}" "jaxlib==${JAX:-0.10.2}" 'numpy==2.4.6' 'xprof==2.24.2'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - 2>errors.txt <<'PYTHON' || { cat errors.txt; exit 1; }
import glob
import json
from importlib.metadata import version

import jax
import jax.numpy as jnp
from xprof.convert.raw_to_tool_data import xspace_to_tool_data, xspace_to_tool_names

sort = jax.jit(jnp.sort)
x = jnp.arange(1000.0)[::-1]
sort(x).block_until_ready()
with jax.profiler.trace("trace"):
    for _ in range(5):
        sort(x).block_until_ready()
(path,) = glob.glob("trace/**/*.xplane.pb", recursive=True)

print(f"jax {jax.__version__}, xprof {version('xprof')}")
planes = jax.profiler.ProfileData.from_file(path).planes
events = {event.name for plane in planes for line in plane.lines for event in line.events}
operations = sorted(name for name in events if name.startswith("sort"))
tools = set(xspace_to_tool_names([path]))
profile = json.loads(xspace_to_tool_data([path], "op_profile", {})[0])
rows = json.loads(xspace_to_tool_data([path], "hlo_stats", {})[0])["rows"]
children = profile["byProgram"]["children"]
print(f"operations in the file: {operations}")
print(f"offered: {sorted(tools & {'op_profile', 'hlo_stats'})}")
print(f"op_profile has {len(children)} programs, hlo_stats {len(rows)} rows")
assert operations
assert {"op_profile", "hlo_stats"} <= tools
assert (children, rows) == ([], [])
PYTHON
