"""Programs that several tests look at are built once for each target."""

from __future__ import annotations

import importlib.util

import pytest

from tests.program.built import PACKAGES, build

ON_TPU = ("softmax", "predict", "attention", "scatter_add", "scan", "stencil_set", "sharded_matmul")
"""A part of the programs: XLA:TPU takes its time."""


def _build(target, names=()):
    package = PACKAGES.get(target)
    if package and not importlib.util.find_spec(package):
        pytest.skip(f"{package} is not installed: nothing can be compiled for {target}")
    return build(target, names)


@pytest.fixture(scope="session")
def on_cpu():
    return _build("cpu")


@pytest.fixture(scope="session")
def on_h200():
    return _build("gpu:h200")


@pytest.fixture(scope="session")
def on_tpu():
    return _build("tpu:v5e", ON_TPU)
