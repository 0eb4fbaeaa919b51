from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harness.workload import inputs
from harness.workload.workload import WorkloadError, spec

RBG = jax.eval_shape(lambda: jax.random.key(0, impl="rbg")).dtype
FLOATS = ["float32", "bfloat16", "float16", "float8_e4m3fn"]
DTYPES = [*FLOATS, "int8", "int16", "int32", "uint8", "uint32", "bool", "complex64"]
KEY = jax.dtypes.prng_key


def numbers(leaf):
    """Return the content of an array, keys included, as something NumPy can compare."""
    if jnp.issubdtype(leaf.dtype, KEY):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf).astype(np.complex128)


@pytest.mark.parametrize("dtype", [*DTYPES, "key"])
def test_the_data_are_of_shape_and_dtype_random_and_the_same_in_every_call(dtype):
    for shape in ((64,), (3, 5), (), (0, 4)):
        filled = inputs.fill(spec(shape, dtype))
        assert filled.shape == shape
        assert jnp.issubdtype(filled.dtype, KEY if dtype == "key" else jnp.dtype(dtype))
        np.testing.assert_array_equal(numbers(filled), numbers(inputs.fill(spec(shape, dtype))))
    one, other = map(numbers, inputs.fill((spec((64,), dtype), spec((64,), dtype))))
    assert not np.array_equal(one, other)
    assert len(np.unique(one)) > 1
    assert np.isfinite(one).all()


@pytest.mark.parametrize(
    ("dtype", "most"), [("int4", 7), ("uint4", 15), ("int8", 99), ("uint8", 99), ("int32", 99)]
)
def test_integers_are_uniform_below_a_hundred_or_over_what_they_hold(dtype, most):
    filled = inputs.fill(spec((4096,), dtype))
    assert str(filled.dtype) == dtype
    assert sorted(set(filled.astype(int).tolist())) == list(range(most + 1))


@pytest.mark.parametrize(("dtype", "low", "high"), [("int8", -5, 7), ("float32", 2.0, 3.0)])
def test_a_range_is_kept(dtype, low, high):
    filled = inputs.fill(spec((10_000,), dtype, low, high))
    assert filled.min() >= low
    assert filled.max() < high
    assert filled.max() - filled.min() > (high - low) * 0.8


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_floats_are_standard_normal(dtype):
    filled = np.asarray(inputs.fill(spec((10_000,), dtype))).astype(np.complex64)
    assert abs(filled.mean()) < 0.05
    assert filled.real.std() == pytest.approx(1, abs=0.05)
    assert filled.imag.std() == pytest.approx(float(dtype == "complex64"), abs=0.05)


def test_every_kind_of_leaf_is_filled_abstract_and_may_get_a_leading_axis():
    tree = {
        "spec": spec((2,), "int32", 3, 5),
        "key": spec((3,), "key"),
        "struct": jax.ShapeDtypeStruct((4,), RBG),
        "numpy": np.ones((5,), np.float32),
        "jax": jnp.ones((6,), jnp.int8),
        "jax key": jax.random.key(3),
    }
    shapes = {"spec": (2,), "key": (3,), "struct": (4,), "numpy": (5,), "jax": (6,), "jax key": ()}
    filled, longer = inputs.fill(tree), inputs.with_leading(tree, 7)
    found = inputs.abstract(tree, "here")
    assert {name: leaf.shape for name, leaf in filled.items()} == shapes
    assert {name: leaf.shape for name, leaf in found.items()} == shapes
    assert {type(leaf) for leaf in found.values()} == {jax.ShapeDtypeStruct}
    assert filled["numpy"] is tree["numpy"]
    assert filled["struct"].dtype == found["struct"].dtype == RBG
    assert inputs.fill(jax.ShapeDtypeStruct((), RBG)).shape == ()
    assert filled["key"].dtype == found["key"].dtype == tree["jax key"].dtype
    assert len(np.unique(numbers(filled["key"]), axis=0)) == 3
    assert longer["spec"] == spec((7, 2), "int32", 3, 5)
    assert {name: leaf.shape for name, leaf in inputs.abstract(longer, "here").items()} == {
        name: (7, *shape) for name, shape in shapes.items()
    }
    with pytest.raises(WorkloadError, match="is 'x' of type str; expected a pytree"):
        inputs.abstract(inputs.with_leading(("x",), 8), "here")
    with pytest.raises(WorkloadError, match=r"1\.5 is a Python number, which has no leading axis"):
        inputs.with_leading((1.5,), 8)


@pytest.mark.parametrize(("low", "high"), [(0, 300), (-1, 5), (5, 5)])
def test_a_range_that_the_dtype_does_not_hold_is_refused(low, high):
    with pytest.raises(WorkloadError, match=rf"a spec of uint8 asks for integers from {low} to"):
        inputs.fill(spec((3,), "uint8", low=low, high=high))


@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        (b"x", r"here: the input at \[0\]\['a'\] is b'x' of type bytes; expected a pytree of"),
        ("float32", r"is 'float32' of type str; .* belongs into sweep and static"),
        (np.tanh, r"is <ufunc 'tanh'> of type ufunc"),
        (spec((2,), "flaot32"), r"has the dtype 'flaot32'; expected a name that NumPy or ml_dt"),
        (spec((2,), "float64"), r"has the dtype float64, .* into float32; set `x64 = True`"),
        (spec((2,), "int64"), r"has the dtype int64, which JAX would turn into int32"),
        (spec((2,), "complex128"), r"has the dtype complex128, which JAX would turn into comp"),
        (np.arange(3), r"has the dtype int64, which JAX would turn into int32; set `x64"),
    ],
)
def test_what_is_no_input_is_refused_with_its_place(leaf, text):
    with pytest.raises(WorkloadError, match=text):
        inputs.abstract(({"a": leaf},), "here")


def test_a_struct_of_64_bits_is_refused_as_well():
    with warnings.catch_warnings(action="ignore"):  # jax 0.11 and later shorten it, and warn
        struct = jax.ShapeDtypeStruct((2,), "float64")
    if struct.dtype != "float64":
        pytest.skip("this JAX makes no such struct")
    with pytest.raises(WorkloadError, match="has the dtype float64, which JAX would turn into"):
        inputs.abstract(struct, "here")
