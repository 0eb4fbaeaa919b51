"""Is a result right: the gates, and what cannot be told by a number."""

import jax
import ml_dtypes
import numpy as np
import pytest

from harness.baselines import equivalence
from harness.workload.workload import Case, Workload, spec


def judge(y, r, dtype="float32", inputs=(), precision="", has_products=False):
    declared = jax.ShapeDtypeStruct(np.shape(y), np.dtype(dtype))
    return equivalence.judge(y, np.asarray(r), declared, list(inputs), precision, has_products)


ONES = np.linspace(1, 2, 100)


@pytest.mark.parametrize(
    ("dtype", "gate"),
    [
        *(("float64", 1e-12), ("float32", 1e-5), ("float16", 2e-3), (ml_dtypes.bfloat16, 1e-2)),
        *(("complex64", 1e-5), ("complex128", 1e-12)),
    ],
)
def test_each_dtype_has_a_gate_on_both_sides_of_which_it_is_judged(dtype, gate):
    right = ONES.astype(dtype)
    reference = right.astype(np.complex128 if right.dtype.kind == "c" else np.float64)
    good = judge(right, reference * (1 + 0.5 * gate), dtype)
    bad = judge(right, reference * (1 + 1.5 * gate), dtype)
    assert (good.reasons, good.gate) == ([], gate)
    assert "wrong values" in bad.reasons[0]
    assert bad.error == pytest.approx(1.5 * gate, rel=0.02)


def test_the_coarsest_dtype_that_takes_part_decides():
    inputs = [np.zeros(3, "float16"), np.zeros(3, "int32")]
    assert judge(ONES.astype("float32"), ONES, inputs=inputs).gate == 2e-3


def test_a_precision_widens_the_gate_of_float32_alone():
    assert judge(ONES.astype("float32"), ONES, precision="tf32").gate == 1e-3
    assert judge(ONES.astype("float32"), ONES, precision="bf16").gate == 1e-2
    assert judge(ONES, ONES, "float64", precision="tf32").gate == 1e-12


@pytest.mark.parametrize("precision", ["", "ieee"])
def test_an_error_of_tf32_is_called_so_where_there_are_products(precision):
    values = (ONES * 1.0003).astype("float32")
    assert judge(values, ONES, precision=precision, has_products=True).labels == ["TF32 detected"]
    assert judge(values, ONES, precision=precision).labels == []
    worse = (ONES * 1.01).astype("float32")
    assert judge(worse, ONES, precision=precision, has_products=True).labels == []


@pytest.mark.parametrize("dtype", ["int32", "bool", "uint8"])
def test_integers_and_booleans_must_be_exact(dtype):
    right = np.arange(10).astype(dtype)
    wrong = right.copy()
    wrong[3] = 0
    assert judge(right, right, dtype).reasons == []
    assert judge(right, wrong, dtype).reasons == [
        "wrong values: output 0 is not exactly the reference's"
    ]


def test_nan_and_infinity_must_be_in_the_same_places():
    right = np.array([1, np.nan, np.inf, -np.inf])
    assert judge(right.astype("float32"), right).reasons == []
    assert "NaN in other places" in judge(np.ones(4, "float32"), right).reasons[0]
    finite = np.array([1, np.nan, 1, -np.inf], "float32")
    assert "infinity in other places" in judge(finite, right).reasons[0]


def test_what_overflows_in_its_dtype_is_infinite_in_the_reference_too():
    assert judge(np.array([np.inf, 1], "float16"), [1e9, 1.0], "float16").reasons == []


def test_zeros_empty_and_scalar_outputs_are_judged():
    assert judge(np.zeros(3, "float32"), np.zeros(3)).error == 0
    assert judge(np.full(3, 1e-30, "float32"), np.zeros(3)).error == np.inf
    assert judge(np.zeros((0, 3), "float32"), np.zeros((0, 3))).reasons == []
    assert judge(np.asarray(2.0, "float32"), 2.0).reasons == []


class Chain(Workload):
    def inputs(self):
        return spec((3,), "float16"), spec((3,), "int32")

    @staticmethod
    def function(x, n):
        return x * n

    @staticmethod
    def baseline(xp, x, n):
        x *= n
        return x


def test_the_reference_is_computed_in_float64_of_the_quantised_inputs_which_stay_as_they_are():
    x, n = np.array([0.1, 0.2, 0.3], "float16"), np.array([1, 2, 3], "int32")
    before = x.copy()
    found = equivalence.reference_of(Chain, Case(), (x, n))
    assert found.dtype == np.float64
    assert np.array_equal(found, before.astype("float64") * n)
    assert np.array_equal(x, before)


def test_bfloat16_is_taken_as_float64_as_well():
    assert equivalence.upcast(np.ones(2, ml_dtypes.bfloat16)).dtype == np.float64
    assert equivalence.upcast(np.ones(2, "complex64")).dtype == np.complex128
    assert equivalence.upcast(np.ones(2, bool)).dtype == np.bool_
