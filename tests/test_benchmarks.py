"""The workloads of this repository compute what NumPy, SciPy and their kernels do."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.special

from benchmarks.kernels import on_cpu, rows_gpu
from harness.baselines.side import namespace
from harness.workload import inputs, transforms
from harness.workload.discovery import discover
from harness.workload.workload import enumerate_cases, make_arguments, name_of, static_arguments

GATES = {"float32": 1e-5, "float64": 1e-12, "complex64": 1e-5}

FOUND = discover(Path(__file__).parents[1] / "benchmarks")
COMPARED = [workload for workload in FOUND.workloads if workload.baseline]

NAMESPACE = namespace("numpy")


def cases(workload):
    for case in enumerate_cases(workload, ["cpu"]):
        comparable = case.precision in ("", "ieee") and case.axes.get("dtype") != "bfloat16"
        if case.transform == "forward" and comparable:
            yield case


def listed(hook):
    return [
        pytest.param(workload, case, id=f"{name_of(workload)}-{case.label}")
        for workload in COMPARED
        if getattr(workload, hook)
        for case in cases(workload)
    ]


@functools.cache
def answered(workload, label):
    """Return a case's inputs, what the function makes of them, and the float64 reference."""
    (case,) = (case for case in cases(workload) if case.label == label)
    arguments = inputs.fill(make_arguments(workload, case).flat)
    static = static_arguments(workload, case)
    with jax.enable_x64(workload.x64):
        function = transforms.transformed(workload, case)
        result = jax.jit(function, static_argnames=workload.static)(*arguments, **static)
        result = jax.tree_util.tree_map(np.asarray, result)
    reference = workload.baseline(NAMESPACE, *jax.tree_util.tree_map(wide, arguments), **static)
    return arguments, static, result, reference


def wide(array):
    kinds = {"f": np.float64, "c": np.complex128}
    return array.astype(kinds.get(array.dtype.kind, array.dtype))


def problems(result, expected, reference):
    """Return how a result differs: from JAX's in kind, from the reference in value."""
    if jax.tree_util.tree_structure(result) != jax.tree_util.tree_structure(expected):
        return ["another pytree"]
    found = []
    leaves = map(jax.tree_util.tree_leaves, (result, expected, reference))
    for one, other, true in zip(*leaves, strict=True):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            found.append(f"{one.dtype}{one.shape} instead of {other.dtype}{other.shape}")
            continue
        error = np.linalg.norm((wide(one) - true).ravel()) / np.linalg.norm(true.ravel())
        if not error <= GATES[one.dtype.name]:
            found.append(f"error {error:.1e}")
    return found


def test_every_workload_is_declared_rightly():
    assert FOUND.broken == {}
    assert len(FOUND.workloads) >= 26


@pytest.mark.parametrize(("workload", "case"), listed("baseline"))
def test_a_baseline_in_numpy_and_the_function_compute_the_same(workload, case):
    arguments, static, expected, reference = answered(workload, case.label)
    assert problems(expected, expected, reference) == []
    own = workload.baseline(NAMESPACE, *arguments, **static)
    assert problems(own, expected, reference) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("workload", "case"), listed("fused_cpu"))
def test_a_fused_baseline_on_the_cpu_and_the_function_compute_the_same(workload, case):
    pytest.importorskip("numba")
    arguments, static, expected, reference = answered(workload, case.label)
    before = jax.tree_util.tree_map(np.copy, arguments)
    result = fused(workload)(*arguments, **static)
    assert problems(result, expected, reference) == []
    jax.tree_util.tree_map(np.testing.assert_array_equal, arguments, before)


@functools.cache
def fused(workload):
    return workload.fused_cpu()


def test_a_result_that_is_wrong_by_little_or_of_another_dtype_is_noticed():
    workload = next(workload for workload in COMPARED if workload.__name__ == "Softmax")
    _, _, expected, reference = answered(workload, next(cases(workload)).label)
    assert problems(expected * np.float32(1.0001), expected, reference) == ["error 1.0e-04"]
    assert problems(expected * np.nan, expected, reference) == ["error nan"]
    assert problems(wide(expected), expected, reference) == [
        "float64(2048, 128) instead of float32(2048, 128)"
    ]
    assert problems((expected,), expected, reference) == ["another pytree"]


@pytest.mark.parametrize(
    "workload", [workload for workload in COMPARED if workload.fused_gpu], ids=name_of
)
@pytest.mark.skipif(not importlib.util.find_spec("cupy"), reason="CuPy is not installed")
def test_the_kernels_for_a_gpu_are_made_without_one(workload, tmp_path, monkeypatch):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))  # made when CuPy is imported
    assert callable(workload.fused_gpu())


def test_rows_are_split_evenly_over_threads_or_refused():
    assert rows_gpu.block(128) == (32, 4)
    assert rows_gpu.block(4096) == (256, 1)
    assert rows_gpu.block(32768) == (1024, 1)
    assert rows_gpu.source("", 4096).startswith("#define WIDTH 4096\n#define THREADS 256\n")
    with pytest.raises(ValueError, match="100 elements; these kernels need a power of two from"):
        rows_gpu.block(100)


def test_the_vectorized_functions_keep_nan_and_the_ends_of_their_range():
    numba = pytest.importorskip("numba")
    exp = on_cpu.exponential()
    x = np.linspace(-87, 88, 10_001, dtype=np.float32)
    got = np.array([exp(value) for value in x])
    np.testing.assert_allclose(got, np.exp(wide(x)), rtol=3e-7)
    assert np.isnan(exp(np.float32(np.nan)))
    assert 0 <= exp(np.float32(-np.inf)) < 2e-38
    erf = on_cpu.error_function(exp)
    x = np.linspace(-5, 5, 10_001, dtype=np.float32)
    got = np.array([erf(value) for value in x])
    np.testing.assert_allclose(got, scipy.special.erf(wide(x)), atol=6e-7)
    for function in (exp, erf):  # no double slips in
        assert [s.return_type for s in function.nopython_signatures] == [numba.float32]
