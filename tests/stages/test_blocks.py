"""Blocks of calls, on a clock that is told what time it is."""

import itertools
import types

import pytest

from harness.stages import blocks
from harness.stages.blocks import Calls, Grouping, group, time_blocks, time_returns


def calls(call, supply=None, donated_bytes=None):
    return Calls(call, supply or itertools.repeat(()), lambda result: result, donated_bytes)


class Clock:
    """A clock that each reading moves on by its cost, and each call by the call's."""

    def __init__(self, call_ns, reading_ns=50):
        self.call_ns, self.reading_ns = call_ns, reading_ns
        self.now_ns = self.calls = 0
        self.arguments = []

    def perf_counter_ns(self):
        self.now_ns += self.reading_ns
        return self.now_ns

    def call(self, *arguments):
        self.now_ns += self.call_ns
        self.calls += 1
        self.arguments.append(arguments)
        return 0.0


@pytest.fixture
def told(monkeypatch):
    def tell(call_ns, reading_ns=50):
        clock = Clock(call_ns, reading_ns)
        stopped = types.SimpleNamespace(perf_counter_ns=clock.perf_counter_ns)
        monkeypatch.setattr(blocks, "time", stopped)
        return clock

    return tell


def test_the_cost_of_the_clock_is_that_of_one_reading(told):
    told(0, 70)
    assert blocks.clock_cost_ns() == pytest.approx(70, rel=0.02)


@pytest.mark.parametrize("call_ns", [20_000_001, 50_000_000, 20_000_000_000])
def test_a_slow_call_is_one_block_of_one_call(told, call_ns):
    clock = told(call_ns)
    plan = group(calls(clock.call))
    assert plan == Grouping(blocks=1, readings=1, number=1, dispatches=1)
    assert clock.calls == 1


@pytest.mark.parametrize("call_ns", [100, 1_000, 9_000])
@pytest.mark.parametrize("effort_s", [0.000_01, 0.001, 0.010])
@pytest.mark.parametrize("reading_ns", [20, 500])
def test_the_clock_is_at_most_a_hundredth_of_a_reading(told, call_ns, effort_s, reading_ns):
    clock = told(call_ns, reading_ns)
    plan = group(calls(clock.call), effort_s)
    assert (plan.blocks, plan.dispatches) == (blocks.BLOCKS, blocks.DISPATCHES)
    assert reading_ns <= blocks.CLOCK_SHARE * plan.number * call_ns * 1.02


@pytest.mark.parametrize("call_ns", [100, 1_000, 20_000])
def test_all_blocks_take_about_the_time_asked_for(told, call_ns):
    clock = told(call_ns)
    plan = group(calls(clock.call), 0.010)
    assert plan.blocks * plan.readings * plan.number * call_ns == pytest.approx(1e7, rel=0.05)


@pytest.mark.parametrize("donated_bytes", [None, 8])
def test_what_is_timed_is_nanoseconds_per_call(told, donated_bytes):
    clock = told(1_000, 50)
    plan = Grouping(blocks=4, readings=7, number=100, dispatches=8)
    made = calls(clock.call, ((number,) for number in itertools.count()), donated_bytes)
    returned, finished = time_returns(made, plan), time_blocks(made, plan)
    assert returned == ([1_050.0] * 8, 1, 8 * 1_050)
    assert finished.samples_ns == [pytest.approx(1_000.5)] * 4
    assert (finished.number, finished.spent_ns) == (100, 4 * 7 * 100_050)
    assert clock.calls == 8 + 4 * 7 * 100


def test_a_block_gives_its_least_reading(told):
    clock = told(0, 0)
    costs = iter([900, 300, 500, 400, 200, 600])

    def call(*_):
        clock.now_ns += next(costs)
        return 0.0

    assert time_blocks(calls(call), Grouping(2, 3, 1, 0)).samples_ns == [300, 200]


def test_a_donating_call_gets_arguments_of_its_own(told):
    clock = told(1_000)
    made = calls(clock.call, ((number,) for number in itertools.count()), donated_bytes=8)
    plan = Grouping(4, 5, 2, 8)
    time_returns(made, plan)
    time_blocks(made, plan)
    assert clock.arguments == [(number,) for number in range(48)]


@pytest.mark.parametrize(
    ("nbytes", "count"), [(blocks.DONATED_BYTES * 2, 1), (blocks.DONATED_BYTES // 3, 3)]
)
@pytest.mark.parametrize("call_ns", [1_000, 100_000])
def test_fresh_buffers_of_a_block_are_bounded(told, nbytes, count, call_ns):
    clock = told(call_ns)
    plan = group(calls(clock.call, donated_bytes=nbytes))
    assert plan.readings * plan.number == count
    free = group(calls(clock.call))
    assert free.readings * free.number > 3
