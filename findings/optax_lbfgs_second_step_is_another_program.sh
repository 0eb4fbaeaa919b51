#!/usr/bin/env bash
# The state that optax.lbfgs().init makes has other types than its update's.
# Most would expect: one trace of a jitted step, as with adam, adamw, MultiSteps or inject_hyperparams.
# Seen: two: three leaves of the line search's state are weakly typed at first.
# The same on jax 0.12.0.1 with Python 3.13.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'numpy==2.4.6' 'optax==0.2.8'
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp
import optax

optimizer, traces = optax.lbfgs(), []


def loss(p):
    return ((p - 1) ** 2).sum()


@jax.jit
def step(p, state):
    traces.append(1)
    value, grad = jax.value_and_grad(loss)(p)
    updates, state = optimizer.update(grad, state, p, value=value, grad=grad, value_fn=loss)
    return optax.apply_updates(p, updates), state


p = jnp.zeros(3)
state = optimizer.init(p)
weak = [jax.tree_util.keystr(path) for path, leaf in jax.tree_util.tree_leaves_with_path(state) if leaf.weak_type]
seen = []
for _ in range(4):
    p, state = step(p, state)
    seen.append(len(traces))
print(f"optax {optax.__version__}, jax {jax.__version__}")
print(f"expected 1, 1, 1, 1 traces; seen: {seen}; weakly typed at first: {weak}")
assert seen == [1, 2, 2, 2] and len(weak) == 3
PYTHON
