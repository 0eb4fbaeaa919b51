"""Programs that are compiled ahead of time, and lowerings that compile kernels."""

import time

import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir

from harness.profiles.findings import findings
from tests.jaxhooks.recorded import profiled

LEAST_OF_LOWER = 0.3
"""Seconds that a rule sleeps: the sampler looks every 25 ms."""


def chain(length, name):
    """Return a jitted function of so many operations."""

    def function(x):
        for n in range(length):
            x = jnp.tanh(x) * n
        return x

    function.__name__ = function.__qualname__ = name
    return jax.jit(function)


def shape(size):
    return jax.ShapeDtypeStruct((size,), "float32")


def found(run):
    return {one.kind: one for one in reversed(findings(profiled(run)))}


def test_what_was_compiled_ahead_of_time_and_never_called_is_named():
    unused, called, jitted = chain(30, "unused"), chain(5, "called"), chain(5, "jitted")
    x = jnp.ones(3)

    def run():
        for size in (3, 4):
            unused.lower(shape(size)).compile()
        called.lower(shape(3)).compile()(x)
        jitted.lower(shape(3)).compile()
        jitted(x)  # it finds that program

    one = found(run)["uncalled"]
    assert (one.function.name, one.count, one.reached) == ("unused", 2, "compiled")
    assert {built.line.kind for built in one.builds} == {"trace", "lower", "compile"}
    assert (one.remedy.kind, one.remedy.argument) == ("compile what is called", "unused")


def test_programs_that_one_thread_compiles_one_after_another_are_named_with_what_threads_save():
    steps = [chain(20 + n, f"step{n}") for n in range(4)]
    x = jnp.ones(3)
    one = found(lambda: [step.lower(shape(3)).compile()(x) for step in steps])["ahead"]
    compiles = [built.build_ns for built in one.builds if built.line.kind == "compile"]
    assert (one.count, len(one.functions), one.remedy.id) == (4, 4, "JH097")
    assert one.stage_s == pytest.approx((sum(compiles) - max(compiles)) / 1e9)


def test_buckets_that_are_compiled_ahead_of_time_may_be_so_in_threads():
    step = chain(30, "buckets")
    sizes = range(3, 8)
    arrays = [jnp.ones(size) for size in sizes]

    def run():
        for size, array in zip(sizes, arrays, strict=True):
            step.lower(shape(size)).compile()(array)

    again = found(run)["again"]
    assert (again.cause.kind, again.remedy.kind) == ("shape", "pad")
    assert again.remedy.second == "compile in threads"


def lowered_by(rule):
    """Return a jitted function of one operation that this rule lowers."""
    primitive = Primitive(rule.__name__)
    primitive.def_abstract_eval(lambda aval: aval)
    mlir.register_lowering(primitive, rule)
    return jax.jit(lambda x: primitive.bind(x))


def test_a_lowering_that_compiles_is_named_with_the_function_that_does():
    def kernel(context, operand):
        time.sleep(LEAST_OF_LOWER)  # as Triton's compiler does
        return [operand]

    function, x = lowered_by(kernel), jnp.ones(3)
    first = found(lambda: function(x))["first"]
    assert (first.stage, first.kernel.function) == ("lower", kernel.__qualname__)
    assert first.kernel.line == kernel.__code__.co_firstlineno
    assert 0 < first.kernel.ns <= first.stage_s * 1e9
    assert first.remedy.kind == "kernels in lower"
