"""The difference of two environments, and of the facts of two programs."""

from __future__ import annotations

import json
import math

import pytest

from harness.frame.differences import UNKNOWN, environment_difference, facts_difference

A, B = ({"XLA_FLAGS": f"--xla_a={n} --xla_b"} for n in (1, 2))
LITTLE = {"host": {"ram_bytes": 25276502016}}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"jax": "1", "flags": {}}, {"flags": {}, "jax": "1"}, ""),
        (  # versions come first, and equal flags are said
            {"host": {"cpu": "x"}, "jax": "0.11.2", "flags": A},
            {"host": {"cpu": "y"}, "jax": "0.12.0.1", "flags": A},
            "jax 0.11.2 → 0.12.0.1, cpu x → y, XLA_FLAGS equal",
        ),
        (
            {"flags": {**A, "JAX_X": "1"}, "plugins": {"libtpu": "1"}},
            {"flags": B, "plugins": {}},
            "libtpu 1 → none, XLA_FLAGS ---xla_a=1 +--xla_a=2, JAX_X 1 → none",
        ),
        (LITTLE, {"host": {"ram_bytes": 25276502020}}, ""),  # memory, as it is read
        (LITTLE, {"host": {"ram_bytes": 2**36}}, "memory 23.5 GiB → 64.0 GiB, flags equal"),
    ],
)
def test_the_difference_of_two_environments(before, after, said):
    assert environment_difference(json.dumps(before), json.dumps(after)) == said


@pytest.mark.parametrize("text", ["", "null", "{", "[1]", "{}"])
def test_an_environment_that_is_not_known_is_said(text):
    assert environment_difference(text, '{"jax": "1"}') == UNKNOWN


def test_facts_that_differ_are_named_with_the_change():
    before = {"fusions": 2.0, "temporary_bytes": 0, "flops": 1.5e9, "launches": math.nan, "jax": 1}
    after = {"fusions": 3.0, "temporary_bytes": 4096, "flops": 1.5e9, "launches": 4, "jax": 2}

    assert facts_difference(before, after) == "+1 fusion, +4.1 kB temporary"
    assert facts_difference(before, {"fusions": None}) == ""
