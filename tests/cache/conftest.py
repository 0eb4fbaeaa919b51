"""Cache directories that real JAX filled, copied for each test, and `harness cache …`."""

from __future__ import annotations

import contextlib
import os
import shutil

import pytest

from tests import forks
from tests.cache.filled import CAP, backdate, run_jax


@pytest.fixture(scope="session")
def originals(tmp_path_factory, fork_server):
    place = tmp_path_factory.mktemp("originals")
    forked = forks.ADDRESS in os.environ
    with contextlib.nullcontext() if forked else forks.forking(fork_server):
        for cap in (-1, CAP):
            assert run_jax(place / str(cap), cap=cap)["written"] == 3
            backdate(place / str(cap))
    return place


@pytest.fixture
def fill(originals, tmp_path):
    # Tests that run JAX again fill a directory of their own: jax 0.10.2 has its path in the key.
    def copy(cap=-1):
        return shutil.copytree(originals / str(cap), tmp_path / f"cache{cap}")

    return copy


@pytest.fixture
def says(command, monkeypatch):
    """Hold `harness cache …` to its exit code and to what it says; return what it prints."""
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)

    def run(*words, code=0, said=""):
        ended, out, err = command("cache", *words)
        assert ended == code, out + err
        assert said in out + err, out + err
        return out

    return run
