"""`harness.profile` in a notebook: opened in the middle, cells as places, a table that follows."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.errors import UsageError

ROOT = Path(__file__).parents[2]

CELLS = [
    "import jax, jax.numpy as jnp\n@jax.jit\ndef known(x):\n    return x * 2\nknown(1.0)",
    "import harness\np = harness.profile(live=True).open()",
    "known(jnp.float32(1))",
    "@jax.jit\ndef again(x):\n    return x + 1\nagain(1.0);",
    "@jax.jit\ndef again(x):\n    return x + 1\nagain(1.0);",  # the same cell, run once more
    "'\\n'.join(p.summary(lines=99))",
    "p.close(); '\\n'.join(p.summary(lines=99))",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    for package in ("nbclient", "ipykernel"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install -e '.[dev]'")
    path = tmp_path_factory.mktemp("notebook") / "cells.ipynb"
    cells = [
        {"cell_type": "code", "id": f"c{number}", "source": source, "metadata": {}, "outputs": []}
        | {"execution_count": None}
        for number, source in enumerate(CELLS)
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook))
    command = [sys.executable, "-m", "tests.notebook", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [cell["outputs"] for cell in json.loads(path.read_text())["cells"]]


def text(outputs):
    return ast.literal_eval("".join(outputs[-1]["data"]["text/plain"]))


def test_places_are_cells_and_their_lines(outputs):
    assert "`known` was compiled" not in text(outputs[5])
    assert "`again` was compiled once more" in text(outputs[5])
    assert "In[4]:4" in text(outputs[5])


def test_while_it_is_open_the_answer_says_so(outputs):
    assert "still open" in text(outputs[5])
    assert "still open" not in text(outputs[6])


def test_what_was_built_before_is_said_to_be_unknown(outputs):
    assert "JAX was in use before the profile was opened" in text(outputs[6])


def test_the_table_stands_below_the_cell_that_opened_it_and_has_the_end(outputs):
    (table,) = outputs[1]
    page = "".join(table["data"]["text/html"])
    assert page.startswith("<table><caption>")
    assert "<td>again</td><td>In[4]:4</td><td>2</td>" in page
    assert not outputs[3]


def test_live_outside_a_notebook_is_refused_and_nothing_stays_open():
    profile = harness.profile(live=True)
    with pytest.raises(UsageError, match="harness profile --live -- python"):
        profile.open()
    assert not profile.is_open


def test_a_profile_is_recorded_once():
    profile = harness.profile().open()
    profile.close()
    profile.close()
    for open_it in (profile.open, profile.__enter__):
        with pytest.raises(UsageError, match="Take a new one"):
            open_it()
