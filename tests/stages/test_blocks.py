"""Blocks of calls, on a clock that is told what time it is."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import pytest

from harness.stages import blocks, prepared
from harness.stages.blocks import Calls, Grouping, group, time_blocks, time_flights, time_returns


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

    def process_time_ns(self):
        return 2 * self.now_ns

    def call(self, *arguments):
        self.now_ns += self.call_ns
        self.calls += 1
        self.arguments.append(arguments)
        return 0.0


@pytest.fixture
def told(monkeypatch):
    def tell(*costs):
        clock = Clock(*costs)
        monkeypatch.setattr(blocks, "time", clock)
        return clock

    return tell


@pytest.mark.parametrize("call_ns", [20_000_001, 50_000_000, 20_000_000_000])
def test_a_slow_call_is_one_block_of_one_call(told, call_ns):
    clock = told(call_ns)
    plan = group(calls(clock.call))
    assert plan == Grouping(blocks=1, readings=1, returns=1, once_ns=call_ns + 50)
    assert clock.calls == 1
    flight = time_flights(calls(clock.call), plan)
    assert (flight.samples_ns, flight.reason) == ([], "a call takes more than 5 ms")
    assert clock.calls == 1


@pytest.mark.parametrize("first_ns", [6_000_000, 19_000_000])
def test_one_call_that_was_held_up_does_not_decide(told, first_ns):
    clock = told(20_000)

    def call():
        clock.now_ns += 0 if clock.calls else first_ns
        return clock.call()

    plan = group(calls(call))
    assert plan.once_ns == 20_050
    assert time_flights(calls(call), plan).reason == ""


@pytest.mark.parametrize("call_ns", [100, 1_000, 20_000])
def test_all_blocks_take_about_the_time_asked_for(told, call_ns):
    clock = told(call_ns, 0)
    plan = group(calls(clock.call), 0.010)
    assert plan.blocks * plan.readings * call_ns == pytest.approx(1e7, rel=0.05)
    assert plan.returns == min(plan.readings, blocks.MOST_RETURNS)


@pytest.mark.parametrize("donated_bytes", [None, 8])
def test_each_call_is_timed_by_itself_and_holds_one_reading_of_the_clock(told, donated_bytes):
    clock = told(1_000, 50)
    plan = Grouping(blocks=4, readings=700, returns=20, once_ns=1_000)
    made = calls(clock.call, ((number,) for number in itertools.count()), donated_bytes)
    returned, finished = time_returns(made, plan), time_blocks(made, plan)
    assert returned == ([1_050] * blocks.BLOCKS, [1_050] * 20, 1, "", ())
    assert finished == ([1_050] * 4, [1_050] * 2_800, 1, "", [2_200] * 4)
    assert clock.calls == 20 + 2_800
    if donated_bytes:  # each call gets arguments of its own
        assert clock.arguments == [(number,) for number in range(clock.calls)]


def test_of_calls_in_flight_the_last_is_waited_for(told):
    clock = told(1_000, 50)
    waited = []

    def ready(result):
        waited.append(clock.calls)
        clock.now_ns += 7_000

    made = Calls(clock.call, itertools.repeat(()), ready, is_there=lambda result: False)
    flight = time_flights(made, Grouping(blocks=3, readings=100, returns=8, once_ns=1_000))
    assert flight.samples_ns == [(100 * 1_000 + 7_000 + 50) / 100] * 3
    assert (flight.number, flight.calls_ns, flight.reason) == (100, (), "")
    assert waited == [100, 200, 300]


def test_calls_whose_result_is_there_at_once_are_in_no_flight(told):
    clock = told(1_000)
    there = iter([True, True, False, True, True, True])
    made = dataclasses.replace(calls(clock.call), is_there=lambda result: next(there))
    plan = Grouping(blocks=3, readings=9, returns=8, once_ns=1_000)
    assert time_flights(made, plan).reason == ""
    assert time_flights(made, plan).reason == blocks.INLINE
    several = time_flights(dataclasses.replace(made, cpu_devices=2), plan)
    assert (several.samples_ns, several.reason) == ([], blocks.TOGETHER)


@pytest.mark.parametrize(("mib", "number"), [(1, 100), (16, 16), (32, 8), (33, 0)])
def test_what_calls_in_flight_hold_is_bounded(told, mib, number):
    clock = told(10_000)
    made = dataclasses.replace(calls(clock.call), result_bytes=mib * 2**20)
    flight = time_flights(made, Grouping(blocks=1, readings=100, returns=8, once_ns=1_000))
    assert flight.number == (number or 1)
    assert flight.reason == (
        "" if number else "what 8 calls return or donate takes more than 256 MiB"
    )


def test_a_block_gives_its_least_reading(told):
    clock = told(0, 0)
    costs = iter([900, 300, 500, 400, 200, 600])

    def call(*_):
        clock.now_ns += next(costs)
        return 0.0

    assert time_blocks(calls(call), Grouping(2, 3, 1, 1_000)).samples_ns == [300, 200]


@pytest.mark.parametrize(
    ("nbytes", "count"), [(blocks.DONATED_BYTES * 2, 1), (blocks.DONATED_BYTES // 3, 3)]
)
@pytest.mark.parametrize("call_ns", [1_000, 100_000])
def test_fresh_buffers_of_a_block_are_bounded(told, nbytes, count, call_ns):
    clock = told(call_ns)
    plan = group(calls(clock.call, donated_bytes=nbytes))
    assert plan.readings == count
    free = group(calls(clock.call))
    assert free.readings > 3


def test_a_result_is_there_when_all_of_its_arrays_are():
    assert prepared.is_there((jax.block_until_ready(jnp.ones(3)), 1))
    assert not prepared.is_there((1, "no array"))
