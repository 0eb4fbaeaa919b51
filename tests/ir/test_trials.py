"""Remedies are tried in several builds, from nothing each, and what came of it is told."""

import itertools

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest

from harness.cli.compile_page import _remedy
from harness.ir import trials
from harness.ir.trials import ROUNDS, try_remedies
from harness.program.compiler.inside import Inside, PassBranch, Remedy
from harness.program.compiler.remedies import TriableRemedy, constants_as_arguments, rolled
from harness.watch.jax_names import options_of

BIG = np.random.default_rng(0).random(2**18, np.float32)
LOWERS = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILES = "/jax/core/compile/backend_compile_duration"


def function(x):
    return x * BIG


def tried(*variants, first_s=0.0, function=function):
    found = [TriableRemedy(Remedy("cause", "", "advice"), one) for one in variants]
    traced = jax.jit(function).trace(jax.ShapeDtypeStruct((), "float32"))
    steps = [*try_remedies(traced, found, None, first_s)]
    return [one.remedy for one in found], steps


def test_the_program_is_lowered_and_compiled_anew_as_it_is_and_with_the_remedy():
    heard = []

    def hear(name, *_, **__):
        heard.append(name)

    jax.monitoring.register_event_duration_secs_listener(hear)
    try:
        [remedy], steps = tried(constants_as_arguments)
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)
    assert heard.count(LOWERS) == heard.count(COMPILES) == 2 * ROUNDS
    assert len(steps) == 1 + 2 * ROUNDS
    assert len(remedy.before_s) == len(remedy.after_s) == ROUNDS
    assert remedy.untried == ""


def test_the_other_program_has_the_compiler_options_of_the_first():
    options = {"xla_cpu_enable_fast_min_max": True}
    jitted = jax.jit(function, compiler_options=options)
    traced = jitted.trace(jax.ShapeDtypeStruct((), "float32"))
    other = trials.traced_as(traced, *constants_as_arguments(traced.jaxpr), None)
    assert dict(options_of(other)["compiler_options_kvs"]) == options


def test_a_long_compile_is_not_repeated_and_its_first_one_counts(monkeypatch):
    hours = itertools.count(step=3600)
    monkeypatch.setattr(trials.time, "monotonic", lambda: float(next(hours)))
    [remedy], _ = tried(constants_as_arguments, first_s=500.0)
    assert remedy.before_s == [500.0]
    assert len(remedy.after_s) == 1


def test_what_is_not_tried_says_why_and_the_others_are_tried():
    def untraced(jaxpr):
        raise NotImplementedError("no such primitive")

    def uncompiled(jaxpr):
        return lambda x: jax.ffi.ffi_call("nobody_has_it", x)(x), [jaxpr.in_avals[0]]

    found, _ = tried(untraced, uncompiled, rolled, constants_as_arguments)
    says = [one.untried for one in found]
    assert "no such primitive" in says[0]
    assert says[1].startswith("it cannot be compiled: ")
    assert says[2].startswith("no equal turns follow one another")
    assert says[3] == ""
    assert [len(one.after_s) for one in found] == [0, 0, 0, ROUNDS]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ([2.0, 2.2, 2.1, 2.0], [1.0, 1.1, 1.0, 1.2], "tried: it saves 1.0 s of lower and compile"),
        ([2.0, 2.2, 2.1, 2.0], [1.0, 2.1, 1.0, 1.2], "is within the noise of 4 builds each"),
        ([2.0, 2.2, 2.1, 2.0], [1.0, 2.0, 1.0, 1.2], "is within the noise of 4 builds each"),
        ([1.5, 2.2, 2.1, 2.0], [1.0, 1.9, 1.0, 1.2], "tried: it saves 950 ms of lower and compile"),
        (
            [1.0, 1.1, 1.0, 1.0],
            [2.0, 2.0, 2.0, 2.0],
            "writes it: it costs 1.0 s of lower and compile",
        ),
        ([200.0], [10.0], "in one build each, which says nothing of noise"),
    ],
)
def test_a_saving_is_told_where_it_stands_out_of_the_noise(before, after, says):
    saved = float(np.median(before) - np.median(after))
    remedy = Remedy("a cause", "", "advice", 0.5, saved, before, after)
    tree = PassBranch("backend_compile_and_load", "rest", 1, 1.0, 0.25, 1.0)
    told = Inside(2.0, 2.0, 0.5, [], tree, [], {})
    assert says in _remedy(remedy, told)
    noise = "noise of 4" in says
    assert remedy.is_noise == noise
    assert remedy.worth_s(2.0) == (0 if noise else saved)


def test_a_loop_is_tried_as_a_scan():
    def steps(x):
        for _ in range(12):
            x = jnp.sin(x) * 2
        return x

    [remedy], _ = tried(rolled, function=steps)
    assert (len(remedy.after_s), remedy.untried) == (ROUNDS, "")
