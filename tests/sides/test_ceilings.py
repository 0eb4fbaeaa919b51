"""What the machine can do at best."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from harness.declare.check import check
from harness.declare.workload import enumerate_cases, make_inputs, skip_reason
from harness.sides import ceilings
from harness.sides.ceilings import Ceilings


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


@pytest.mark.parametrize("kind", Ceilings.sweep["kind"])
@pytest.mark.parametrize("size", Ceilings.sweep["size"])
def test_the_bytes_are_those_of_inputs_and_output(kind, size):
    (case,) = (
        case
        for case in enumerate_cases(Ceilings, ["gpu"])
        if case.axes == {"kind": kind, "size": size} and case.precision == "ieee"
    )
    specs = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in make_inputs(Ceilings, case)]
    out = jax.eval_shape(lambda *arrays: Ceilings.function(*arrays, kind=kind), *specs)
    moved = sum(one.size * one.dtype.itemsize for one in (*specs, out))
    assert ceilings.moved_bytes(kind, size) == moved


@pytest.mark.parametrize("kind", ["copy", "triad", "gemm"])
def test_function_and_baseline_compute_the_same(kind):
    x = np.random.default_rng(2).standard_normal((16, 16)).astype("float32")
    arrays = (x,) if kind == "copy" else (x, x + 1)
    theirs = jax.jit(lambda *a: Ceilings.function(*a, kind=kind))(*arrays)
    np.testing.assert_allclose(theirs, Ceilings.baseline(np, *arrays, kind=kind), rtol=1e-5)
    assert kind != "copy" or theirs is not x


def test_a_product_of_matrices_has_two_operations_for_each_pair_and_a_copy_none():
    assert ceilings.flops("gemm", "host") == 2 * 1024**3
    assert ceilings.flops("gemm-bfloat16", "device") == 2 * 8192**3
    assert ceilings.flops("triad", "device") == 2 * 2**27
    assert ceilings.flops("copy", "host") == 0
