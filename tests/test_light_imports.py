"""What is asked for often stays quick: it imports nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness.cli import COMMANDS

HEAVY = {"jax", "jaxlib", "numpy", "pandas", "pyarrow", "scipy"}

LIGHT = [
    "harness",
    "harness.cli",
    "harness.records.environment",
    "harness.errors",
    "harness.measure.process",
    "harness.records.schema",
    "harness.stages.sampling",
    "harness.workload.discovery",
    "harness.targets",
    "harness.measure.job",
    "harness.workload.workload",
    "harness.workload.check",
    "harness.measure.plan",
    "harness.measure.worker",
    "harness.program.difference",
]

AFTER_EACH = """
import contextlib, io, json, runpy, sys

def help_of(words):
    sys.argv = ["harness", *words.split(), "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        runpy.run_module("harness", run_name="__main__")
    return said.getvalue()

for step in sys.argv[1:]:
    said = help_of(step[1:]) if step[0] == "?" else exec(step, {"__name__": "own"}) or ""
    print(json.dumps([step, said, sorted({name.split(".")[0] for name in sys.modules})]))
"""
"""Execute lines and show helps, one after the other; what one loads stays for those after it."""

DECLARED = """
from harness import Workload, spec
class Own(Workload):
    def inputs(self): return spec((4,), 'bfloat16')
    @staticmethod
    def function(x): return x
from harness.workload.check import check
from harness.workload.source import version_of
check(Own), version_of(Own)
"""


def after_each(*steps):
    """Return what each step printed, and the top names of all that was loaded after it."""
    command = [sys.executable, "-c", AFTER_EACH, *steps]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = map(json.loads, done.stdout.splitlines())
    return {step: (said, set(names)) for step, said, names in lines}


def test_importing_a_light_module_or_declaring_a_workload_loads_nothing_heavy():
    steps = [*(f"import {module}" for module in LIGHT), DECLARED]
    found = after_each(*steps)
    assert {step: names & HEAVY for step, (_, names) in found.items()} == {
        step: set() for step in steps
    }


def test_asking_for_help_loads_nothing_heavy_and_no_command():
    said, names = after_each("?")["?"]
    assert "Usage: harness" in said
    assert names & (HEAVY | {"rich", "msgspec", "asv"}) == set()


@pytest.fixture(scope="module")
def helps():
    return after_each(*(f"?{command}" for command in COMMANDS))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_wakes_no_jax(helps, command):
    said, names = helps[f"?{command}"]
    assert f"Usage: harness {command}" in said
    assert names & {"jax", "jaxlib"} == set()


@pytest.mark.nightly
def test_this_would_notice_jax():
    assert {"jax", "jaxlib"} <= after_each("import jax")["import jax"][1]
