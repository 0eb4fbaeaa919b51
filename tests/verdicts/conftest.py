from __future__ import annotations

import functools

import pytest


@pytest.fixture
def compare(command):
    """Run `harness compare`; return its exit code, output and errors."""
    return functools.partial(command, "compare")
