"""The command that sets repositories up, on one with a test, a script, and nothing of asv's."""

import sys

import pytest

from tests.scaffold.package import Package
from tools.corpus.repositories import Repository, markdown, measured

TEST = """
import jax.numpy as jnp
from mypackage import models


def test_total(benchmark):
    benchmark(models.total, jnp.ones(8))
"""


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory):
    package = Package(tmp_path_factory.mktemp("somebody"), layout="flat")
    package.write(package.folder / "tests" / "test_speed.py", TEST)
    package.write(package.folder / "benchmarks" / "theirs.py", "raise SystemExit(3)\n")
    package.run("git add --all && git commit --quiet -m 'A test'")
    return package.top.parent


@pytest.mark.nightly
def test_a_repository_is_set_up_measured_and_compared_and_left_as_it_was(checkouts):
    found = measured(
        Repository("me/repository", "adopt tests/test_speed.py"), checkouts, sys.executable
    )
    assert (found.verdict, found.failed) == ("of 1 case: 1 no rise", False)
    assert (found.workloads, found.rows >= 8) == (1, True)
    *_, line = markdown([found])
    assert line.startswith("| [repository](https://github.com/me/repository), ")
    assert not (checkouts / "repository" / "asv.conf.json").exists()


def test_a_command_that_fails_is_told(checkouts):
    found = measured(Repository("me/repository", "adopt tests/none.py"), checkouts, sys.executable)
    assert found.failed
    assert found.verdict.startswith("adopt ended with 2: harness: tests/none.py is no file.")
