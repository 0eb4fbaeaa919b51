#!/usr/bin/env bash
# pyperf measures JAX under other settings than the ones in the environment, and shows no warning.
# Most would expect: JAX_ENABLE_X64=1 python bench.py measures in float64; XLA_FLAGS and the cache's folder as well.
# Seen: workers get PATH, HOME and a few more variables: float32, while the process that was started has float64.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check "jax==${JAX:-0.10.2}" "jaxlib==${JAX:-0.10.2}" 'numpy==2.4.6' 'pyperf==2.11.0'
cd "$folder"
cat > bench.py <<'PYTHON'
import sys

import jax
import jax.numpy as jnp
import pyperf

with open("dtypes.txt", "a") as file:
    who = "worker" if "--worker" in sys.argv else "started"
    print(who, jnp.ones(3, float).dtype, file=file)
f = jax.jit(lambda x: x * 2)
x = jnp.ones(3)
runner = pyperf.Runner(processes=2, values=2, warmups=1, loops=10)
runner.metadata["jax"] = jax.__version__
runner.bench_func("f", lambda: f(x).block_until_ready())
PYTHON
run() {
    rm -f dtypes.txt
    JAX_ENABLE_X64=1 JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore bench.py --quiet "$@" > output.txt 2>&1 ||
        { cat output.txt; exit 1; }
    sort -u dtypes.txt | paste -sd,
}
"$folder/venv/bin/python" -c 'import jax, pyperf; print(f"jax {jax.__version__}, pyperf {pyperf.__version__}")'
plain=$(run)
inherited=$(run --inherit-environ=JAX_ENABLE_X64,JAX_PLATFORMS)
echo "as it is: $plain"
echo "with --inherit-environ=JAX_ENABLE_X64,JAX_PLATFORMS: $inherited"
grep -qi "warn\|environ" output.txt && exit 1
test "$plain" = "started float64,worker float32"
test "$inherited" = "started float64,worker float64"
