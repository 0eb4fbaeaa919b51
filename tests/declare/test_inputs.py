from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harness.declare import inputs
from harness.declare.workload import WorkloadError, spec

RBG = jax.eval_shape(lambda: jax.random.key(0, impl="rbg")).dtype
FLOATS = ["float32", "bfloat16", "float16", "float8_e4m3fn"]
DTYPES = [*FLOATS, "int8", "int16", "int32", "uint8", "uint32", "bool", "complex64"]


def numbers(leaf):
    """Return the content of an array, keys included, as something NumPy can compare."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf).astype(np.complex128)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(64,), (3, 5), (), (0, 4)])
def test_a_spec_is_filled_with_its_shape_and_dtype(dtype, shape):
    filled = inputs.fill(spec(shape, dtype))
    assert filled.shape == shape
    assert filled.dtype == jnp.dtype(dtype)


@pytest.mark.parametrize("dtype", [*DTYPES, "key"])
@pytest.mark.parametrize("shape", [(64,), ()])
def test_the_data_are_the_same_in_every_call(dtype, shape):
    first, second = (numbers(inputs.fill(spec(shape, dtype))) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("dtype", [*DTYPES, "key"])
def test_the_data_are_neither_zeros_nor_ones(dtype):
    filled = numbers(inputs.fill(spec((64,), dtype)))
    assert len(np.unique(filled)) > 1
    assert np.isfinite(filled).all()


def test_two_inputs_are_not_the_same_numbers():
    one, other = inputs.fill((spec((64,)), spec((64,))))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(("dtype", "most"), [("int4", 7), ("uint4", 15)])
def test_integers_of_less_than_a_byte_are_uniform_over_what_they_hold(dtype, most):
    filled = inputs.fill(spec((4096,), dtype))
    assert str(filled.dtype) == dtype
    assert sorted(set(filled.astype(int).tolist())) == list(range(most + 1))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_integers_are_uniform_below_a_hundred(dtype):
    filled = inputs.fill(spec((10_000,), dtype))
    assert filled.min() == 0
    assert filled.max() == 99


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


def test_keys_are_typed_and_of_the_shape_asked_for():
    scalar = inputs.fill(spec((), "key"))
    shaped = inputs.fill(spec((2, 3), "key"))
    assert jnp.issubdtype(scalar.dtype, jax.dtypes.prng_key)
    assert scalar.shape == ()
    assert shaped.shape == (2, 3)
    assert len(np.unique(jax.random.key_data(shaped).reshape(6, -1), axis=0)) == 6


@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_shape_dtype_struct_may_ask_for_keys_of_another_kind(shape):
    filled = inputs.fill(jax.ShapeDtypeStruct(shape, RBG))
    assert filled.dtype == RBG
    assert filled.shape == shape


def test_arrays_pass_through_and_structure_is_kept():
    array = np.arange(3)
    filled = inputs.fill({"a": [array, spec((2,))], "b": (jax.ShapeDtypeStruct((4,), "int32"),)})
    assert filled["a"][0] is array
    assert filled["a"][1].shape == (2,)
    assert filled["b"][0].dtype == "int32"


def test_everything_has_an_abstract_value():
    tree = {
        "spec": spec((2,), "bfloat16"),
        "key": spec((3,), "key"),
        "struct": jax.ShapeDtypeStruct((4,), RBG),
        "numpy": np.ones((5,), np.float32),
        "jax": jnp.ones((6,), jnp.int8),
    }
    found = inputs.abstract(tree, "here")
    assert {name: type(leaf) for name, leaf in found.items()} == dict.fromkeys(
        tree, jax.ShapeDtypeStruct
    )
    assert {name: leaf.shape for name, leaf in found.items()} == {
        "spec": (2,),
        "key": (3,),
        "struct": (4,),
        "numpy": (5,),
        "jax": (6,),
    }
    assert found["key"].dtype == jax.random.key(0).dtype


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


def test_a_leading_axis_is_put_before_every_leaf():
    tree = {
        "spec": spec((2,), "int32", 3, 5),
        "key": spec((), "key"),
        "struct": jax.ShapeDtypeStruct((4,), "float32"),
        "numpy": np.arange(5, dtype=np.int32),
        "jax": jnp.arange(6),
        "jax key": jax.random.key(3),
    }
    longer = inputs.with_leading(tree, 7)
    assert longer["spec"] == spec((7, 2), "int32", 3, 5)
    shapes = {name: leaf.shape for name, leaf in inputs.abstract(longer, "here").items()}
    assert shapes == {
        "spec": (7, 2),
        "key": (7,),
        "struct": (7, 4),
        "numpy": (7, 5),
        "jax": (7, 6),
        "jax key": (7,),
    }


def test_a_leading_axis_makes_no_input_of_what_is_none():
    with pytest.raises(WorkloadError, match="is 'x' of type str; expected a pytree"):
        inputs.abstract(inputs.with_leading(("x",), 8), "here")
    with pytest.raises(WorkloadError, match=r"1\.5 is a Python number, which has no leading axis"):
        inputs.with_leading((1.5,), 8)


@pytest.mark.parametrize(("low", "high"), [(0, 300), (-1, 5), (5, 5)])
def test_a_range_that_the_dtype_does_not_hold_is_refused(low, high):
    with pytest.raises(WorkloadError, match=rf"a spec of uint8 asks for integers from {low} to"):
        inputs.fill(spec((3,), "uint8", low=low, high=high))
