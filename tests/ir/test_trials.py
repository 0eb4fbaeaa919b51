"""Remedies are tried in several builds, from nothing each, and what came of it is told."""

import itertools

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest

from harness.ir import trials
from harness.ir.trials import ROUNDS, trial_of, try_remedies
from harness.jaxhooks.jax_names import options_of
from harness.output.compile import cause_lines
from harness.program.compiler.causes import CompileCause, RemedyTrial
from harness.program.compiler.inside import Inside, PassBranch
from harness.program.compiler.variants import VARIANTS, constants_as_arguments

BIG = np.random.default_rng(0).random(2**18, np.float32)
LOWERS = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILES = "/jax/core/compile/backend_compile_duration"


def function(x):
    return x * BIG


def tried(*kinds, first_s=0.0, function=function):
    found = [CompileCause(kind) for kind in kinds]
    traced = jax.jit(function).trace(jax.ShapeDtypeStruct((), "float32"))
    steps = [*try_remedies(traced, found, None, first_s)]
    return [one.trial for one in found], steps


def test_the_program_is_lowered_and_compiled_anew_as_it_is_and_with_the_remedy():
    heard = []

    def hear(name, *_, **__):
        heard.append(name)

    jax.monitoring.register_event_duration_secs_listener(hear)
    try:
        [trial], steps = tried("constants")
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)
    assert heard.count(LOWERS) == heard.count(COMPILES) == 2 * ROUNDS
    assert len(steps) == 1 + 2 * ROUNDS
    assert len(trial.before_s) == len(trial.after_s) == ROUNDS
    assert trial.untried == ""


def test_the_other_program_has_the_compiler_options_of_the_first():
    options = {"xla_cpu_enable_fast_min_max": True}
    jitted = jax.jit(function, compiler_options=options)
    traced = jitted.trace(jax.ShapeDtypeStruct((), "float32"))
    other = trials.traced_as(traced, *constants_as_arguments(traced.jaxpr), None)
    assert dict(options_of(other)["compiler_options_kvs"]) == options


def test_a_long_compile_is_not_repeated_and_its_first_one_counts(monkeypatch):
    hours = itertools.count(step=3600)
    monkeypatch.setattr(trials.time, "monotonic", lambda: float(next(hours)))
    [trial], _ = tried("constants", first_s=500.0)
    assert trial.before_s == [500.0]
    assert len(trial.after_s) == 1


def test_what_is_not_tried_says_why_and_the_others_are_tried(monkeypatch):
    def untraced(jaxpr):
        raise NotImplementedError("no such primitive")

    def uncompiled(jaxpr):
        return lambda x: jax.ffi.ffi_call("nobody_has_it", x)(x), [jaxpr.in_avals[0]]

    monkeypatch.setitem(VARIANTS, "untraced", untraced)
    monkeypatch.setitem(VARIANTS, "uncompiled", uncompiled)
    found, _ = tried("untraced", "uncompiled", "loop", "constants")
    codes = ["not traced", "not compiled", "unequal turns", ""]
    assert [one.untried for one in found] == codes
    assert "no such primitive" in found[0].detail
    assert [len(one.after_s) for one in found] == [0, 0, 0, ROUNDS]


def test_one_loop_is_tried_for_all_and_none_of_other_shapes_nor_of_several_devices():
    loops = [
        CompileCause("loop", count=9),
        CompileCause("repeated"),
        CompileCause("loop", is_same=False),
        CompileCause("switch"),
    ]
    trials = [trial_of(one, loops, False) for one in loops]
    codes = [one and one.untried for one in trials]
    assert codes == ["stopped", "rolled before", "other shapes", None]
    assert trial_of(loops[0], loops, True).untried == "several devices"


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ([2.0, 2.2, 2.1, 2.0], [1.0, 1.1, 1.0, 1.2], "Tried: saves 1.0 s of lower and compile"),
        ([2.0, 2.2, 2.1, 2.0], [1.0, 2.1, 1.0, 1.2], "is within the noise of 4 builds each"),
        ([2.0, 2.2, 2.1, 2.0], [1.0, 2.0, 1.0, 1.2], "is within the noise of 4 builds each"),
        ([1.5, 2.2, 2.1, 2.0], [1.0, 1.9, 1.0, 1.2], "Tried: saves 950 ms of lower and compile"),
        (
            [1.0, 1.1, 1.0, 1.0],
            [2.0, 2.0, 2.0, 2.0],
            "writes it: costs 1.0 s of lower and compile",
        ),
        ([200.0], [10.0], "in one build each, which says nothing of noise"),
    ],
)
def test_a_saving_is_told_where_it_stands_out_of_the_noise(before, after, says):
    saved = float(np.median(before) - np.median(after))
    cause = CompileCause("folding", cost_s=0.5, trial=RemedyTrial(before, after))
    tree = PassBranch("backend_compile_and_load", "rest", 1, 1.0, 0.25, 1.0)
    assert says in [*cause_lines(cause, Inside(2.0, 2.0, 0.5, [], tree, [], {}))][-1]
    noise = "noise of 4" in says
    assert cause.trial.is_noise == noise
    assert cause.worth_s(2.0) == (0 if noise else saved)


def test_a_loop_is_tried_as_a_scan():
    def steps(x):
        for _ in range(12):
            x = jnp.sin(x) * 2
        return x

    [trial], _ = tried("loop", function=steps)
    assert (len(trial.after_s), trial.untried) == (ROUNDS, "")
