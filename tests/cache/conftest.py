"""Cache directories that real JAX filled, copied for each test."""

from __future__ import annotations

import shutil

import pytest

from tests.cache.filled import CAP, backdate, run_jax


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    place = tmp_path_factory.mktemp("originals")
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
