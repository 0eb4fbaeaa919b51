import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harness.jaxhooks.evidence import Evidence, contradiction
from harness.stages.registry import CASE_STAGES, STAGES
from harness.workload.transforms import fresh

COLD = {name: dict(STAGES[name].events) for name in CASE_STAGES}


def scaled(x):
    return jnp.tanh(x) * 2


SHAPE = jax.ShapeDtypeStruct((3,), "float32")


@pytest.fixture(autouse=True)
def nothing_in_memory():
    jax.clear_caches()


def test_each_stage_shows_its_own_event_once(proof):
    data = jax.device_put(np.ones(3, np.float32))
    proof.take()
    traced = jax.jit(fresh(scaled)).trace(SHAPE)
    assert proof.take() == COLD["trace"]
    assert proof.take() == {}
    lowered = traced.lower()
    assert proof.take() == COLD["lower"]
    compiled = lowered.compile()
    assert proof.take() == COLD["compile"]
    compiled(data)
    assert proof.take() == COLD["execute"]


def test_a_second_pass_over_the_same_function_contradicts_cold(proof):
    jitted = jax.jit(fresh(scaled))
    traced = jitted.trace(SHAPE)
    lowered = traced.lower()
    lowered.compile()
    second = jitted.trace(SHAPE)
    passes = [("trace", lambda: jitted.trace(SHAPE)), ("lower", second.lower)]
    passes += [("lower", traced.lower), ("compile", lowered.compile)]
    for stage, again in passes:
        proof.take()
        again()
        assert contradiction(proof.take(), COLD[stage])


def test_a_cached_trace_found_by_another_jit_is_told_by_its_jaxpr_alone(proof):
    """If the event fails to come, JAX has learnt to tell, and `stages` need no longer look."""
    function = fresh(scaled)
    first = jax.jit(function).trace(SHAPE)
    proof.take()
    second = jax.jit(function).trace(SHAPE)
    assert proof.take() == COLD["trace"]
    assert second.jaxpr is first.jaxpr
    assert jax.jit(fresh(function)).trace(SHAPE).jaxpr is not first.jaxpr


def test_a_closed_one_hears_nothing():
    listening = Evidence()
    listening.close()
    jax.jit(fresh(scaled)).trace(SHAPE)
    assert listening.take() == {}


def test_a_contradiction_says_what_was_seen_and_what_was_needed():
    text = contradiction({"trace": 2, "compile": 1}, {"trace": 1})
    assert text == "events show 1 compile, 2 trace; the label needs 1 trace"
    assert contradiction({"trace": 1}, {"trace": 1}) is None
    assert contradiction({"hit": 1}, {}) == "events show 1 hit; the label needs no event"
    assert contradiction({}, {"hit": 1}) == "events show no event; the label needs 1 hit"
