"""Kernels per call, from the rows of CUPTI."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from harness.sides.attribution import attribute, summarise
from harness.sides.cupy_eager import DRIVER_FILE
from harness.sides.side import l2_cache_bytes

ROWS = [("exp", 2.0), ("sum", 1.0), ("exp", 1.5), ("sum", 1.0)]


def test_the_rows_of_equal_calls_become_launches_and_the_least_time():
    found = summarise(ROWS, 2)
    assert (found.launches, found.device_ns, found.kernels) == (2, 2.5e6, ("exp", "sum"))


@pytest.mark.parametrize(
    ("rows", "iterations", "reason"),
    [
        ([], 2, "CUPTI saw no kernel"),
        (ROWS[:3], 2, "2 equal calls launched 3 kernels"),
        (ROWS[:2], 2, "equal calls launched different kernels"),
    ],
)
def test_rows_that_are_not_of_equal_calls_are_refused(rows, iterations, reason):
    assert reason in summarise(rows, iterations)


@pytest.mark.skipif(DRIVER_FILE.exists(), reason="there is a CUDA driver")
def test_without_a_device_there_is_a_reason_and_the_call_is_not_made():
    made = []
    reason = attribute(lambda: made.append(1))
    assert "CUPTI" in reason
    assert not made
    assert l2_cache_bytes() is None


def test_a_process_of_cupy_must_keep_jax_from_the_device():
    script = "from harness.sides.attribution import attribute; print(attribute(list))"
    environment = {**os.environ, "JAX_PLATFORMS": "cuda"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("JAX_PLATFORMS must be 'cpu'")
