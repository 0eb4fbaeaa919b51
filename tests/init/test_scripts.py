"""A folder of scripts, with nothing in it that pip could install: its own modules are measured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from tests.init.package import FEW, Package

NBODY = """\
import jax
import jax.numpy as jnp


@jax.jit
def get_acc(pos, mass):
    between = pos[None] - pos[:, None]
    inverse = (jnp.sum(between * between, -1) + 0.1) ** -1.5
    return jnp.einsum("ij,ijk,j->ik", inverse, between, mass)


if __name__ == "__main__":
    print(get_acc(jnp.ones((8, 3)), jnp.ones(8)).sum())
"""
INIT = 'init --function nbody:get_acc --arg "float32[8,3]" --arg "float32[8]"'
QUICK = "run --effort quick --case size=8"
HIDING = ("random", "queue", "jax", "click", "msgspec", "pandas", "psutil")
"""Scripts of these names would hide modules of Python, of JAX's and of the harness's own."""


class Scripts(Package):
    """A repository with one script, in a shell that has set no path; asv is the real one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, git=False)
        shutil.rmtree(self.top)
        self.write(self.folder / "nbody.py", NBODY)
        self.run("git init --quiet && git add . && git commit --quiet -m 'A script'")

    def environment(self, **variables: str) -> dict[str, str]:
        there = super().environment(PYTHONPATH=str(Path(harness.__file__).parents[1]), **variables)
        if "ASV_PYTHONPATH" not in variables:
            del there["ASV_PYTHONPATH"]
        own = {"HARNESS_LOCKS": os.environ["HARNESS_LOCKS"], "HARNESS_EFFORT": "quick"}
        return there | FEW | own

    def stages(self, **variables: str) -> str:
        """Run asv on what is installed, as a user does, and return what it said."""
        asv = Path(sys.executable).with_name("asv")
        machine = "--machine box --os o --arch a --cpu c --num_cpu 2 --ram 1"
        command = f"{asv} machine {machine} && {asv} run -E existing --machine box -b GetAcc"
        return self.run(f"{command} --set-commit-hash HEAD --show-stderr", **variables)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    made = Scripts(tmp_path_factory.mktemp("scripts"))
    made.said = made.harness(INIT)
    made.run("git add . && git commit --quiet -m Benchmarks")
    return made


def test_the_next_commands_work_in_a_new_shell(scripts):
    assert "nbody:get_acc traces; sweep: size = 8, 32." in scripts.said
    assert "ASV_PYTHONPATH=$PWD asv run -E existing" in scripts.said
    assert "pip install -e" not in scripts.said
    workflow = scripts.text(".github/workflows/benchmarks.yml")
    assert 'ASV_PYTHONPATH: "${{ github.workspace }}"' in workflow
    assert "nbody.get_acc" in scripts.harness("list")
    assert "1 measured, 0 measured before and reused, 0 failed" in scripts.harness(QUICK)


def test_asv_measures_with_the_path_that_it_is_given_alone(scripts):
    said = scripts.stages(ASV_PYTHONPATH=str(scripts.folder), HARNESS_FRESH="1")
    assert "track_compile" in said
    assert "failed" not in said
    rows = harness.load(scripts.folder / "results", all=True)
    assert set(rows[rows["machine"] == "box"]["status"]) == {"ok"}


@pytest.mark.nightly
def test_scripts_called_like_other_modules_hide_none_of_them(scripts):
    for name in HIDING:
        scripts.write(scripts.folder / f"{name}.py", "raise SystemExit('hidden')\n")
    try:
        # `python -m harness` would search the folder first, as Python does.
        command = Path(sys.executable).with_name("harness")
        assert "hidden" not in scripts.run(f"{command} {QUICK} --fresh")
        assert "nbody.get_acc" in scripts.run(f"{command} list")
        # Python itself puts the script's folder first: nothing of ours can help that.
        script = [sys.executable, "nbody.py"]
        assert subprocess.run(script, cwd=scripts.folder, check=False).returncode
    finally:
        for name in HIDING:
            os.unlink(scripts.folder / f"{name}.py")


def test_a_script_is_profiled(scripts):
    said = scripts.harness(f"profile -o profiled -- {sys.executable} nbody.py")
    assert "get_acc" in said
    assert "nbody.py" in said


def test_a_module_that_is_nowhere_is_told_where_it_was_looked_for(scripts):
    said = scripts.harness(INIT.replace("nbody:", "nobody:"), code=2)
    assert f"and in {scripts.folder}" in said
    assert "pip install" not in said


def test_commits_that_were_not_measured_name_the_command_that_measures_them(scripts):
    said = scripts.harness("compare HEAD~1 HEAD", code=2)
    assert "'HEAD~1' has no folder benchmarks" in said
    scripts.run("git commit --quiet --allow-empty -m 'Nothing'")
    said = scripts.harness("compare HEAD~1 HEAD", code=2)
    assert said.endswith("harness compare HEAD~1 HEAD --live\n")
