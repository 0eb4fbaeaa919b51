"""`pytest --jax-profile` names the test of every build, with and without workers."""

from __future__ import annotations

import os
import sys

import pytest

from harness.profiles.recorded import read
from tests import forks
from tests.jaxhooks.programs import environment

PLUGIN = "harness.profiles.pytest_plugin"
TESTS = """
import jax, numpy as np, pytest

@pytest.fixture
def made():
    return jax.jit(lambda x: x * 2)(np.ones(2))

@pytest.mark.parametrize("size", [3, 4])
def test_sizes(size):
    def sized(x):
        return x + 1
    jax.jit(sized)(np.ones(size))

def test_fixture(made):
    assert made.sum() == 4

def test_nothing():
    assert False
"""


def run(folder, *options):
    (folder / "test_own.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN]
    variables = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    return forks.run([*command, "-p", "xdist", *options], cwd=folder, env=variables, timeout=120)


@pytest.mark.nightly
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_every_build_has_its_test(tmp_path, workers):
    done = run(tmp_path, "--jax-profile=own", *workers)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 3 passed" in done.stdout
    assert f"Profile: {tmp_path / 'own'}" in done.stdout
    profile = read(tmp_path / "own")
    tests = {built.line.test for built in profile.builds if built.function.origin == "program"}
    names = ("test_sizes[3]", "test_sizes[4]", "test_fixture")
    assert tests == {f"test_own.py::{name}" for name in names}
    assert len(profile.processes) == (2 if workers else 1)
    assert {process.started.how for process in profile.processes} == {"pytest"}
    assert all(process.ended is not None for process in profile.processes)
    assert profile.run.exit_code == 1
    assert profile.run.end_ns > profile.run.begin_ns


def test_a_folder_of_tests_is_not_taken_for_the_profiles(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("def test_it(): pass\n")
    done = run(tmp_path, "--jax-profile", "tests")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "written behind =, as in --jax-profile=FOLDER" in done.stderr
    assert os.listdir(tmp_path / "tests") == ["test_it.py"]


def test_where_jax_cannot_be_imported_it_is_said_in_a_sentence(tmp_path):
    (tmp_path / "jax.py").write_text("raise ImportError('broken')\n")
    done = run(tmp_path, "--jax-profile=own")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --jax-profile: JAX cannot be imported (broken)" in done.stderr
    assert "Traceback" not in done.stderr


def test_where_it_is_not_asked_for_nothing_is_imported(tmp_path, fresh_processes):
    code = (
        "import sys, pytest\n"
        "def test_light():\n"
        "    assert 'harness.profiles.pytest_plugin' in sys.modules\n"
        "    heavy = {'jax', 'pandas', 'msgspec', 'harness.jaxhooks'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    (tmp_path / "test_light.py").write_text(code)
    done = run(tmp_path, "test_light.py")
    assert done.returncode == 0, done.stdout
