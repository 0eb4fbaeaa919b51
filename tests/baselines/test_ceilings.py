"""What the machine can do at best."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from harness.baselines.ceilings import Ceilings
from harness.workload.check import check
from harness.workload.workload import enumerate_cases, skip_reason


def chosen(target):
    cases = enumerate_cases(Ceilings, [target])
    return [case for case in cases if skip_reason(Ceilings, case) is None]


def test_it_is_declared_as_any_other_workload():
    check(Ceilings)


def test_a_cpu_and_a_gpu_measure_sizes_of_their_own():
    cpu = [(case.axes["kind"], case.axes["size"], case.precision) for case in chosen("cpu")]
    assert cpu == [(kind, "host", "ieee") for kind in ("copy", "triad", "gemm")]
    gpu = [(case.axes["kind"], case.axes["size"], case.precision) for case in chosen("gpu")]
    assert gpu == [
        ("copy", "device", "ieee"),
        ("triad", "device", "ieee"),
        ("gemm", "device", "ieee"),
        ("gemm", "device", "tf32"),
        ("gemm-bfloat16", "device", "ieee"),
    ]


@pytest.mark.parametrize("kind", ["copy", "triad", "gemm"])
def test_function_and_baseline_compute_the_same(kind):
    x = np.random.default_rng(2).standard_normal((16, 16)).astype("float32")
    arrays = (x,) if kind == "copy" else (x, x + 1)
    theirs = jax.jit(lambda *a: Ceilings.function(*a, kind=kind))(*arrays)
    np.testing.assert_allclose(theirs, Ceilings.baseline(np, *arrays, kind=kind), rtol=1e-5)
    assert kind != "copy" or theirs is not x
