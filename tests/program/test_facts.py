from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from dataclasses import fields

import jax
import jax.numpy as jnp
import msgspec
import pytest

from harness.program.fact import Fact
from harness.program.facts import BUILT, FACTS, FIRST, Facts, facts_of
from harness.program.text import fingerprint
from tests.program.programs import stages


@functools.cache
def program():
    return stages(lambda x: jnp.sin(jax.nn.softmax(x @ x)))


def test_every_total_of_a_cpu_program_is_known():
    facts = facts_of(*program())
    assert [name for name in BUILT if getattr(facts, name) is None] == []
    assert facts.fusions == sum(facts.fusion_kinds.values()) > 0
    assert facts.stablehlo_operations == sum(facts.stablehlo_kinds.values()) > 0
    assert 0 < facts.launches < facts.hlo_instructions


@pytest.mark.parametrize(
    ("missing", "unknown"),
    [
        (0, {"jaxpr_equations"}),
        (1, {"stablehlo_operations", "stablehlo_bytes"}),
        (2, set(BUILT) - {"jaxpr_equations", "stablehlo_operations", "stablehlo_bytes"}),
    ],
)
def test_a_stage_that_is_missing_leaves_its_facts_unknown(missing, unknown):
    given = list(program())
    given[missing] = None
    facts = facts_of(*given)
    assert {name for name in BUILT if getattr(facts, name) is None} == unknown


def test_without_any_stage_nothing_is_known():
    assert facts_of(None, None, None) == Facts()


SCRIPT = "import sys; from tests.program import test_facts as t; sys.stdout.buffer.write(t.told())"


def told():
    built = program()
    return msgspec.json.encode([facts_of(*built), fingerprint(built[-1])])


def test_facts_and_the_fingerprint_are_the_same_bytes_in_every_process():
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    other = [sys.executable, "-c", SCRIPT]
    said = subprocess.run(other, env=environment, stdout=subprocess.PIPE, check=True).stdout
    assert said == told()
    facts, identity = msgspec.json.decode(said, type=tuple[Facts, str])
    assert facts.launches > 0
    assert re.fullmatch(r"[0-9a-f]{16}", identity)


def test_pmap_has_no_jaxpr_and_all_else():
    lowered = jax.pmap(lambda x: x + 1).lower(jax.ShapeDtypeStruct((1, 8), "float32"))
    facts = facts_of(None, lowered, lowered.compile())
    assert facts.jaxpr_equations is None
    assert facts.launches == 1


def test_each_of_the_facts_that_are_told_first_has_a_place_of_its_own():
    assert [fact.rank for fact in FIRST] == list(range(1, len(FIRST) + 1))


def test_a_fact_that_lacks_something_is_refused_with_what_it_lacks():
    whole = {field.name: getattr(FACTS["fusions"], field.name) for field in fields(Fact)}
    for lacking in ("name", "meaning", "noun", "unit", "source", "better"):
        with pytest.raises(TypeError, match=f"lacks a valid `{lacking}`; it has ''"):
            Fact(**whole | {lacking: ""})
    for lacking in ("name", "meaning", "noun", "source", "read"):
        with pytest.raises(TypeError, match=lacking):
            Fact(**{name: value for name, value in whole.items() if name != lacking})
    with pytest.raises(TypeError, match="the fact 'fusions' lacks a valid `read`; it has None"):
        Fact(**whole | {"read": None})
