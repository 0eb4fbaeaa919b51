"""The wheel alone, in a clean environment without the repository, is a working harness.

TESTED_WHEEL names a wheel to test instead of one that is built here. It needs a package index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.installation import Installation
from tools.building import ROOT, build
from tools.extras import accelerator_packages

# Half of a gigabyte may have to come from the index first.
pytestmark = [pytest.mark.slow, pytest.mark.replay, pytest.mark.timeout(900)]

LIGHT = """\
import sys, harness, harness.cli
print(harness.__file__)
print(*{"jax", "jaxlib", "numpy", "pandas", "pyarrow", "scipy", "altair"} & set(sys.modules))
"""

COMPILES = """\
import jax
import jax.numpy as jnp

for step in range(3):
    jax.jit(lambda x: x * 2)(jnp.ones(4)).block_until_ready()
"""

TYPED = """\
from harness import Workload, __version__, load, spec

reveal_type(__version__)
reveal_type(spec((4,), "float32"))
load(1)
"""

BUDGET = """\
import jax
import pytest


@pytest.mark.jax_budget(max_compiles=0)
def test_builds_nothing():
    jax.jit(lambda x: x + 1)(2.0)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if named := os.environ.get("TESTED_WHEEL"):
        return Path(named).resolve()
    if not (ROOT / ".git").exists():
        pytest.skip("the wheel is built from what git tracks, and this is no clone")
    return build(tmp_path_factory.mktemp("dist"))[1]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clean")
    yield Installation(folder, wheel)
    shutil.rmtree(folder)  # nearly a gigabyte


@pytest.fixture(scope="module")
def project(installed):
    """A project of a user's own, set up by `harness init`, with one measured workload."""
    installed.add_models()
    arguments = [word for shape in ("16,8", "8", "4,16") for word in ("--arg", f"float32[{shape}]")]
    installed.run("harness", "init", "--function", "mypackage.models:predict", *arguments)
    installed.run("git", "add", ".")
    installed.run("git", "commit", "--quiet", "--message", "Benchmarks")
    installed.run("harness", "run", "--effort", "quick")
    return installed


def test_it_is_the_installed_package_and_importing_it_loads_nothing_heavy(installed, wheel):
    place, loaded = installed.run("python", "-c", LIGHT).stdout.split("\n")[:2]
    assert Path(place).is_relative_to(installed.bin.parent)
    assert loaded == ""
    version = wheel.name.split("-")[1]
    assert installed.run("harness", "--version").stdout == f"harness {version}\n"
    assert "Usage: harness" in installed.run("harness", "--help").stdout


def test_without_extras_no_package_is_for_gpus(installed):
    packages = installed.packages()
    assert {"jax", "asv", "jax-harness"} <= set(packages)
    assert accelerator_packages(list(packages)) == []
    installed.run("python", "-m", "pip", "check")


def test_a_project_is_set_up_and_measured(project):
    said = project.run("harness", "show").stdout
    assert "predict.Predict" in said
    assert "compile" in said
    assert "failed" not in said
    read = "import harness; print((harness.load('results').status == 'ok').sum() > 4)"
    assert project.run("python", "-c", read).stdout == "True\n"
    assert (project.project / ".github" / "workflows" / "benchmarks.yml").is_file()


def test_asv_finds_the_workloads(project):
    assert project.run("python", "-m", "asv", "--version").stdout.startswith("asv 0.6.6")
    project.run("asv", "machine", "--yes")
    project.run("asv", "check", "-E", "existing")


def test_what_needs_an_extra_names_it(project):
    said = project.run("harness", "report", code=2).stderr
    assert "pip install 'altair>=5.5' 'jinja2>=3.1' 'vl-convert-python>=1.7'" in said


def test_a_program_is_profiled(installed):
    (installed.project / "x.py").write_text(COMPILES)
    done = installed.run("harness", "profile", "-o", "profiled", "--", "python", "x.py")
    assert "x.py:5" in done.stdout + done.stderr


def test_data_files_are_read(installed):
    said = installed.run("harness", "targets").stdout
    assert "NVIDIA H200" in said


def test_the_plugin_of_pytest_is_found(installed):
    installed.install("pytest")
    (installed.project / "test_budget.py").write_text(BUDGET)
    done = installed.run("python", "-m", "pytest", "--strict-markers", "test_budget.py", code=1)
    assert "test_budget.py:7" in done.stdout


def test_type_checkers_see_the_types(installed):
    (installed.project / "typed.py").write_text(TYPED)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", installed.bin / "python", "typed.py"],
        cwd=installed.project,
        env=installed.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'Revealed type is "str"' in done.stdout, done.stdout + done.stderr
    assert "harness.workload.workload.Spec" in done.stdout
    assert "arg-type" in done.stdout
    assert "import-untyped" not in done.stdout
