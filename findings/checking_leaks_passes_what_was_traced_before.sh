#!/usr/bin/env bash
# jax.checking_leaks() finds no leak in a function that was called before, outside it.
# Most would expect: a call under it is checked, as one under jax.debug_nans() is.
# Seen: the check is a part of tracing, and is not among what makes JAX trace again: the call returns. The same
# function, first called under it, raises.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check "jax==${JAX:-0.10.2}" "jaxlib==${JAX:-0.10.2}" 'numpy==2.4.6'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp


def leaking():
    leaked = []

    @jax.jit
    def f(x):
        leaked.append(x * 2)
        return jnp.log(x)

    return f


def result(f):
    try:
        f(-1.0)
    except Exception as error:
        return str(error).split(".")[0]
    return "no error"


print(f"jax {jax.__version__}")
called, fresh = leaking(), leaking()
result(called)
with jax.checking_leaks():
    seen = {"called before": result(called), "not called before": result(fresh)}
print(f"under checking_leaks: {seen}")
assert seen == {
    "called before": "no error",
    "not called before": "Leaked trace DynamicJaxprTrace",
}
with jax.debug_nans(True):
    seen = result(called)
print(f"called before, under debug_nans: {seen}")
assert "nan" in seen
jax.clear_caches()
with jax.checking_leaks():
    seen = result(called)
print(f"called before, under checking_leaks after jax.clear_caches(): {seen}")
assert seen == "Leaked trace DynamicJaxprTrace"
PYTHON
