"""Slow-downs that are put in on purpose lengthen the stage that they name, and nothing else."""

from __future__ import annotations

import time

import jax
import pytest

from harness.stages import injection, registry
from harness.stages.injection import Injected, Work, lengthened, measure_work
from harness.stages.passes import take_pass
from harness.stages.prepared import prepare
from harness.workload.workload import Case, Workload, spec

STAGES = ("trace", "lower", "compile", "dispatch", "execute")
SHORT_S = 0.0005


class Tiny(Workload):
    targets = ("cpu",)

    def inputs(self):
        return spec((16,))

    @staticmethod
    def function(x):
        return jax.numpy.sin(x) * 2


@pytest.mark.nightly
@pytest.mark.parametrize("stage", STAGES)
def test_a_slow_down_lengthens_the_stage_that_it_names_and_no_other(stage, proof, monkeypatch):
    slept_s = 0.01
    announced, turned = [], []

    def sleeps(step, turns, *arguments):
        turned.append((announced[-1], turns))
        time.sleep(slept_s)  # each sample has it in: a wait lasts no less than was asked for
        return step(*arguments)

    monkeypatch.setattr(injection, "_after_turns", sleeps)
    prepared = prepare(Tiny, Case())
    prepared.turns = {stage: 9}
    taken = take_pass(prepared, proof, effort_s=SHORT_S, announce=announced.append)
    assert taken.refused == {}
    assert set(turned) == {(stage, 9)}
    assert min(taken.samples_ns[stage]) >= slept_s * 1e9


def test_without_a_slow_down_the_step_itself_is_what_is_called():
    def step():
        return 7

    assert lengthened(step, 0) is step
    assert lengthened(step, 5) is not step
    assert lengthened(step, 5)() == 7


def test_an_ordinary_pass_times_the_jitted_function_itself(proof, monkeypatch):
    called = []

    def noted(real):
        return lambda calls, plan: called.append(calls.call) or real(calls, plan)

    monkeypatch.setattr(registry, "time_returns", noted(registry.time_returns))
    monkeypatch.setattr(registry, "time_blocks", noted(registry.time_blocks))
    prepared = prepare(Tiny, Case())
    take_pass(prepared, proof, effort_s=SHORT_S)
    assert [type(call).__name__ for call in called] == ["PjitFunction"] * 2
    called.clear()
    prepared.turns = {"execute": 9}
    take_pass(prepared, proof, effort_s=SHORT_S)
    assert type(called[0]) is not type(called[1])


def test_the_number_of_turns_leaves_the_cost_of_the_call_out():
    assert Work(call_ns=100, turn_ns=20).turns({"execute": 500, "compile": 60}) == {
        "execute": 20,
        "compile": 1,
    }


def test_the_work_is_measured():
    work = measure_work()
    assert work.call_ns >= 0
    assert work.turn_ns > 0


def test_the_protocol_tells_runs_of_other_slow_downs_and_of_other_medians_apart():
    marks = [
        Injected({"compile": effect}, {"family.Work case": {"compile": median_ns}}).mark
        for effect, median_ns in ((0.2, 1e6), (0.2, 2e6), (0.3, 1e6))
    ]
    assert marks[0].startswith("compile +0.2 of ")
    assert len(set(marks)) == 3


def test_a_program_with_extra_work_is_another_program():
    assert injection.fingerprint("abc", {}) == "abc"
    assert injection.fingerprint("", {"compile": 1.0}) == ""
    known = {
        injection.fingerprint("abc", extra)
        for extra in ({}, {"compile": 1.0}, {"compile": 2.0}, {"lower": 1.0})
    }
    assert len(known) == 4
