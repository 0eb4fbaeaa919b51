"""The difference of two environments, and of the facts of two programs."""

from __future__ import annotations

import json
import math

import pytest

from harness.frame.differences import UNKNOWN, environment_difference, facts_difference


def difference(before, after):
    return environment_difference(json.dumps(before), json.dumps(after))


def test_equal_environments_have_no_difference():
    assert difference({"jax": "1", "flags": {}}, {"flags": {}, "jax": "1"}) == ""


def test_versions_come_first_and_equal_flags_are_said():
    flags = {"XLA_FLAGS": "--xla_a=1"}
    before = {"host": {"cpu": "x"}, "jax": "0.11.2", "flags": flags}
    after = {"host": {"cpu": "y"}, "jax": "0.12.0.1", "flags": flags}

    assert difference(before, after) == "jax 0.11.2 → 0.12.0.1, cpu x → y, XLA_FLAGS equal"


def test_flags_that_came_and_went_are_named():
    before = {"flags": {"XLA_FLAGS": "--xla_a=1 --xla_b", "JAX_X": "1"}, "plugins": {"libtpu": "1"}}
    after = {"flags": {"XLA_FLAGS": "--xla_a=2 --xla_b"}, "plugins": {}}

    found = difference(before, after)

    assert found == "libtpu 1 → none, XLA_FLAGS ---xla_a=1 +--xla_a=2, JAX_X 1 → none"


def test_memory_is_compared_as_it_is_read():
    little = [{"host": {"ram_bytes": size}} for size in (25276502016, 25276502020)]

    assert difference(*little) == ""
    assert "memory 23.5 GiB → 64.0 GiB" in difference(little[0], {"host": {"ram_bytes": 2**36}})


@pytest.mark.parametrize("text", ["", "null", "{", "[1]", "{}"])
def test_an_environment_that_is_not_known_is_said(text):
    assert environment_difference(text, '{"jax": "1"}') == UNKNOWN


def test_facts_that_differ_are_named_with_the_change():
    before = {"fusions": 2.0, "temporary_bytes": 0, "flops": 1.5e9, "launches": math.nan, "jax": 1}
    after = {"fusions": 3.0, "temporary_bytes": 4096, "flops": 1.5e9, "launches": 4, "jax": 2}

    assert facts_difference(before, after) == "+1 fusion, +4.1 kB temporary"
    assert facts_difference(before, {"fusions": None}) == ""
