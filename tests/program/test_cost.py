from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from harness.program import cost, facts

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
