"""Calls of all cases come in one stretch, after the last of them was built; nothing is compiled."""

import jax
import jax.numpy as jnp

from harness.jaxhooks import jax_names
from harness.measure import staged
from harness.stages.registry import names
from harness.stages.staged_case import StagedCase
from harness.workload.workload import Case, Workload, spec


def made(function):
    members = {"inputs": lambda self: spec((4,)), "function": staticmethod(function)}
    return type("Made", (Workload,), {"targets": ("cpu",), **members})


def call(cases):
    """Call cases that were built."""
    for case in cases:
        case.make_ready(lambda stage: None)
        case.warm(0.0, lambda stage: None)
        case.call("run", lambda stage: None)


def test_what_was_built_before_another_case_is_not_compiled_again(proof, monkeypatch):
    compiled = []

    def way(real):
        def compile_module(client, module, *others, **named):
            compiled.append(str(module.operation.attributes["sym_name"]))
            return real(client, module, *others, **named)

        return compile_module

    kinds = (lambda x: jnp.sin(x) @ x), (lambda x: jax.pure_callback(lambda y: y, x, x))
    cases = [StagedCase(made(kind), Case(), proof) for kind in (*kinds, kinds[0])]
    for case in cases:
        case.visit(0, lambda stage: None)
    with jax_names.compiling_through(way):
        call(cases)
    assert compiled == []
    for case in cases:
        for stage in names("run"):
            samples = case.samples[stage]
            assert samples.refused == {}
            assert samples.samples_ns or samples.reason
            assert samples.method == 3


def test_a_call_that_runs_another_program_than_was_built_is_refused(proof):
    factors = iter(range(1, 9))
    cases = [
        StagedCase(made(lambda x: x * next(factors)), Case(), proof),
        StagedCase(made(lambda x: x + 1), Case(), proof),
    ]
    for case in cases:
        case.visit(0, lambda stage: None)
    call(cases)
    changed, same = (case.samples["execute"] for case in cases)
    (reason,) = changed.refused
    assert reason.startswith("the call did not run the program that was compiled: events show")
    assert not changed.samples_ns
    assert same.samples_ns


def test_the_stretch_begins_when_the_pool_is_awake(proof, monkeypatch):
    monkeypatch.setattr(staged, "AWAKE_S", 0.02)
    order = []

    class Noted(StagedCase):
        def visit(self, number, announce):
            order.append("build")
            return super().visit(number, announce)

        def make_ready(self, announce):
            order.append("ready")
            return super().make_ready(announce)

        def warm(self, seconds, announce):
            order.append(("warm", seconds))
            return super().warm(seconds, announce)

        def call(self, step, announce):
            order.append(step)
            return super().call(step, announce)

    runs = {str(number): _Run(Noted(made(lambda x: x + 1), Case(), proof)) for number in range(2)}
    for run in runs.values():
        run.take(0, lambda announce, run=run: run.measured.visit(0, announce))
    staged.call(runs, passes=2, seed=1)
    warmed = [one for one in order if isinstance(one, tuple)]
    assert len(warmed) in (2, 4)
    assert all(0 < seconds <= 0.01 for _, seconds in warmed)
    assert [one for one in order if one not in warmed][:8] == [
        *["build"] * 2,
        *["ready"] * 2,
        *["run"] * 4,
    ]
    rounds = [one for one in order if one == "compute"]
    assert len(rounds) >= 2 * 3


class _Run:
    over = False

    def __init__(self, measured):
        self.measured = measured

    def take(self, number, measure):
        measure(lambda stage: None)
