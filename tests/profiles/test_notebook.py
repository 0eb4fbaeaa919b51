"""`harness.profile` in a notebook: opened in the middle, cells as places."""

from __future__ import annotations

import ast
import sys

import pytest

import harness
from harness.errors import UsageError
from tests import forks

CELLS = [
    "import jax, jax.numpy as jnp\n@jax.jit\ndef known(x):\n    return x * 2\nknown(1.0)",
    "import harness\np = harness.profile().open()",
    "known(jnp.float32(1))",
    "@jax.jit\ndef again(x):\n    return x + 1\nagain(1.0);",
    "@jax.jit\ndef again(x):\n    return x + 1\nagain(1.0);",  # the same cell, run once more
    "'\\n'.join(p.summary(lines=99))",
    "p.close(); '\\n'.join(p.summary(lines=99))",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[dev]'")
    path = tmp_path_factory.mktemp("notebook") / "cells.ipynb"
    cells = map(nbformat.v4.new_code_cell, CELLS)
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), path)
    done = forks.run([sys.executable, "-m", "tools.notebook", str(path)], cwd=forks.ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    return [cell.outputs for cell in nbformat.read(path, as_version=4).cells]


def test_the_answer_names_cells_and_says_whether_it_is_the_end(outputs):
    during, after = (ast.literal_eval(outputs[n][-1]["data"]["text/plain"]) for n in (5, 6))
    assert "`known` was compiled" not in during
    assert "`again` was compiled once more" in during
    assert "In[4]:4" in during
    assert "still open" in during
    assert "still open" not in after
    assert "JAX was in use before the profile was opened" in after


def test_a_profile_is_recorded_once():
    profile = harness.profile().open()
    profile.close()
    profile.close()
    for open_it in (profile.open, profile.__enter__):
        with pytest.raises(UsageError, match="Take a new one"):
            open_it()
