from __future__ import annotations

import subprocess
import sys

import pytest

from harness.cli import COMMANDS

HEAVY = {"jax", "jaxlib", "pandas", "pyarrow", "scipy"}

LIGHT = [
    "harness",
    "harness.cli",
    "harness.records.environment",
    "harness.errors",
    "harness.engine.process",
    "harness.records.schema",
    "harness.stages.sampling",
    "harness.declare.discovery",
    "harness.targets",
    "harness.engine.job",
    "harness.declare.workload",
]


def imported(*arguments):
    """Run Python and return what it printed, and the top names of all that it imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return done.stdout, {line.split("|")[-1].strip().split(".")[0] for line in lines}


@pytest.mark.parametrize("module", LIGHT)
def test_importing_a_light_module_loads_nothing_heavy(module):
    _, names = imported("-c", f"import {module}")
    assert "harness" in names
    assert names & HEAVY == set()


def test_declaring_a_workload_loads_nothing_heavy():
    script = (
        "from harness import Workload, spec\n"
        "class Own(Workload):\n"
        "    def inputs(self): return spec((4,), 'bfloat16')\n"
        "    @staticmethod\n"
        "    def function(x): return x\n"
        "from harness.declare.check import check\nfrom harness.declare.source import version_of\n"
        "check(Own), version_of(Own)\n"
    )
    _, names = imported("-c", script)
    assert names & HEAVY == set()


def test_asking_for_help_loads_nothing_heavy_and_no_command():
    said, names = imported("-m", "harness", "--help")
    assert "Usage: harness" in said
    assert names & (HEAVY | {"rich", "msgspec", "asv"}) == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_wakes_no_jax(command):
    said, names = imported("-m", "harness", command, "--help")
    assert f"Usage: harness {command}" in said
    assert names & {"jax", "jaxlib"} == set()


def test_this_would_notice_jax():
    _, names = imported("-c", "import jax")
    assert {"jax", "jaxlib"} <= names
