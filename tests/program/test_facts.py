import functools
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest

from harness.program import cost, difference, facts, hlo
from harness.program.facts import BUILT, FIRST, Facts, facts_of
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


@pytest.mark.nightly
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


# --- XLA's analyses -----------------------------------------------------------------------------

X = jax.ShapeDtypeStruct((64, 64), "float32")


def compiled(function, **options):
    return jax.jit(function, **options).lower(X).compile()


def costs(program):
    return facts.read("cost", cost.analysis(program))


def memory(program):
    return facts.read("memory", program.memory_analysis())


def answering(found, modules=()):
    executable = SimpleNamespace(hlo_modules=lambda: modules)
    return SimpleNamespace(
        cost_analysis=lambda: found,
        memory_analysis=lambda: found,
        runtime_executable=lambda: executable,
    )


def test_flops_and_bytes_are_those_of_the_back_end():
    program = compiled(lambda x: jnp.tanh(x) @ x)
    said = program.cost_analysis()
    found = costs(program)
    assert found == {
        "flops": said["flops"],
        "transcendentals": said["transcendentals"],
        "bytes_accessed": said["bytes accessed"],
    }
    assert found["flops"] >= 2 * 64**3
    assert found["transcendentals"] == 64 * 64


def test_where_the_back_end_does_not_answer_the_module_is_asked():
    program = compiled(lambda x: jnp.tanh(x) @ x)
    found = costs(answering(None, program.runtime_executable().hlo_modules()))
    assert found["transcendentals"] == 64 * 64
    assert found["flops"] == pytest.approx(2 * 64**3, rel=0.1)


def test_where_nobody_answers_nothing_is_said():
    assert costs(answering(None, [])) == {}
    assert costs(answering(None, [object(), object()])) == {}
    silent = answering(None)
    silent.runtime_executable = object
    assert costs(silent) == {}
    assert memory(answering(None)) == {}


def test_an_answer_may_be_a_list_of_one_a_negative_property_is_unknown_one_left_out_nothing():
    for answer in (said := {"flops": -1.0, "bytes accessed": 8.0}, [said]):
        found = costs(answering(answer))
        assert found == {"flops": None, "bytes_accessed": 8.0, "transcendentals": 0.0}


def test_without_bytes_nothing_is_known():
    """So a TPU answers of a program that is one Pallas kernel (jax 0.10 to 0.12)."""
    unknown = dict.fromkeys(("flops", "bytes_accessed", "transcendentals"))
    assert costs(answering({"bytes accessed0{}": 4.0})) == unknown


def called(x):
    return jax.pure_callback(np.sin, X, x)


@pytest.mark.parametrize(
    ("function", "flops", "calls"),
    [
        (lambda x: x @ x, 2 * 64**3, 0),
        (lambda x: (x @ x) + called(x), 2 * 64**3 + 64**2, 1),
        (lambda x: called(called(x) + x), 64**2, 2),
        (called, None, 1),
        (lambda x: jax.lax.top_k(x, 3)[0], None, 1),
        (lambda x: x, 0, 0),
    ],
)
def test_custom_calls_are_no_part_of_the_costs_and_never_0(function, flops, calls):
    found = facts_of(None, None, compiled(function))
    assert (found.custom_calls, found.flops) == (calls, flops)
    assert (found.bytes_accessed is None) == (flops is None)
    text = {name: text for name, text, _ in difference.rows(found)}["flops"]
    without = {0: "", 1: " without 1 custom call", 2: " without 2 custom calls"}[calls]
    assert text == (difference.UNKNOWN if flops is None else f"{flops:,}{without}")


CALLS = """HloModule m
ENTRY %main (x: f32[8]) -> f32[8] {
  %a = f32[8] custom-call(%x), custom_call_target="EighTpu"
  %b = f32[8] custom-call(%a), custom_call_target="X64Combine"
  %c = f32[8] custom-call(%b), custom_call_target="tpu_custom_call"
  ROOT %d = f32[8] custom-call(%c), custom_call_target="AssumeGatherIndicesInBound"
}
"""
SENT = """HloModule m
ENTRY %main (x: f32[8]) -> f32[8] {
  %a = (f32[8], u32[], token[]) send(%x, %t), channel_id=1, is_host_transfer=true
  %b = token[] send-done(%a), channel_id=1, is_host_transfer=true
}
"""


@pytest.mark.parametrize(
    ("text", "platform", "flops", "found"),
    [
        (CALLS, "tpu", 98.0, 100.0),  # of the four it counts two
        (CALLS, "gpu", 98.0, 98.0),
        (CALLS, "cpu", 96.0, 100.0),
        (CALLS, "tpu", -2.0, None),
        (
            CALLS.replace("tpu_custom_call", "X64SplitLow").replace("EighTpu", "X64SplitHigh"),
            "gpu",
            0.0,
            0.0,
        ),
        (SENT, "tpu", 0.0, None),
        (SENT, "tpu", 5.0, 5.0),
        ("", "tpu", 0.0, 0.0),
    ],
)
def test_a_call_is_no_operation_less_on_any_platform(text, platform, flops, found):
    """A TPU counts -1 of each call of a library, and calls of the host are unknown to it."""
    program = answering({"flops": flops, "bytes accessed": 9.0})
    placed = SimpleNamespace(device_set=[SimpleNamespace(platform=platform)])
    program.input_shardings, program.output_shardings = (), [placed]
    of = hlo.from_text(text)
    told = facts.read("cost", cost.analysis(program, hlo.called(of), hlo.hidden_calls(of)))
    assert told["flops"] == found


def test_memory_is_that_of_arguments_outputs_and_temporaries():
    found = memory(compiled(lambda x: jnp.sort(x, axis=0) @ x @ jnp.sin(x)))
    assert found["argument_bytes"] == found["output_bytes"] == 64 * 64 * 4
    assert found["temporary_bytes"] >= 64 * 64 * 4
    assert found["peak_bytes"] >= found["argument_bytes"] + found["output_bytes"]
    assert found["aliased_bytes"] == 0
    donated = memory(compiled(lambda x: x + 1, donate_argnums=0))
    assert donated["aliased_bytes"] == 64 * 64 * 4


def test_a_statistic_that_a_release_lacks_is_left_out():
    found = memory(answering(SimpleNamespace(temp_size_in_bytes=5)))
    assert {name: value for name, value in found.items() if value} == {"temporary_bytes": 5}


def test_memory_on_the_host_is_a_fact_of_its_own():
    sizes = dict.fromkeys(("host_argument_size_in_bytes", "host_temp_size_in_bytes"), 1)
    found = memory(answering(SimpleNamespace(**sizes, host_output_size_in_bytes=5)))
    assert found["host_bytes"] == 7
    assert memory(answering(SimpleNamespace(**sizes)))["host_bytes"] is None
