"""What a remedy names is sound: a dtype that holds both, and what changes is passed."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import pytest

from harness.profiles.causes.arrays import _wider
from tools.profile_remedies.__main__ import judged
from tools.profile_remedies.pairs import ALL

DTYPES = (
    *("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"),
    *("float16", "bfloat16", "float32", "complex64"),
)


def test_of_two_dtypes_the_one_that_holds_both_is_named():
    with jax.enable_x64(True):
        for one, other in itertools.product(DTYPES, DTYPES):
            assert _wider(one, other) == str(jnp.promote_types(one, other)), (one, other)
    assert _wider("key<fry>", "uint32") == "key<fry>"
    assert _wider("float8_e4m3fn", "float32") == "float8_e4m3fn"


SOUND = (
    "partial_that_binds_an_array",
    "method_of_an_object_that_changes",
    "structure_whose_function_closes_over_an_array",
    "whole_numbers_come_first",
    "argument_whose_shape_is_used",
)
"""Remedies that once changed results."""


@pytest.mark.parametrize("name", SOUND)
def test_a_remedy_passes_on_what_changes(name):
    wrong, _ = judged(next(pair for pair in ALL if pair.name == name))
    assert wrong == []
