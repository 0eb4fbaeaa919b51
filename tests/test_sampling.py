from __future__ import annotations

import itertools
import random
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from harness.errors import UsageError
from harness.stages import sampling
from harness.stages.sampling import EFFORTS, effort, is_narrow, median_interval_ranks, visits

# --- efforts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EFFORTS)
def test_an_effort_has_a_name(name):
    assert effort(name) is EFFORTS[name]


def test_only_thorough_adds_processes():
    assert [name for name in EFFORTS if EFFORTS[name].adaptive] == ["thorough"]
    assert effort("quick").processes == 1


@given(st.integers(1, 9999), st.integers(1, 9999))
def test_an_effort_may_be_written_as_processes_and_passes(processes, passes):
    found = effort(f"{processes}x{passes}")
    assert (found.processes, found.passes, found.limit) == (processes, passes, processes)
    assert not found.adaptive


@pytest.mark.parametrize(
    "text", ["", "fast", "0x1", "1x0", "x", "6x", "x1", "-1x1", "1.5x1", "6 x 1", "6X1", "10000x1"]
)
def test_an_unknown_effort_names_those_there_are(text):
    said = rf"No effort is called '{text}'; known are quick, default, thorough, or PROCESSESxPASS"
    with pytest.raises(UsageError, match=said):
        effort(text)


def test_the_protocol_depends_on_what_one_process_does_alone():
    assert effort("default").protocol == effort("thorough").protocol == effort("20x3").protocol
    assert effort("8x2").protocol != effort("8x3").protocol


# --- the order of visits --------------------------------------------------------------------------

CASES = st.lists(st.integers(-1, 50), unique=True, max_size=12)


@given(CASES, st.integers(0, 5), st.integers())
def test_every_case_is_visited_once_in_every_pass(cases, passes, seed):
    order = visits(cases, passes, seed)
    assert [number for number, _ in order] == sorted(number for number, _ in order)
    for number in range(passes):
        assert sorted(case for pass_, case in order if pass_ == number) == sorted(cases)
    assert len(order) == passes * len(cases)


@given(CASES, st.integers(0, 5), st.integers())
def test_the_order_comes_again_from_its_seed(cases, passes, seed):
    assert visits(cases, passes, seed) == visits(cases, passes, seed)


def test_the_order_differs_between_seeds_and_passes():
    cases = range(8)
    orders = [visits(cases, 2, seed) for seed in range(20)]
    assert len({tuple(order) for order in orders}) == 20
    assert all([c for _, c in order[:8]] != [c for _, c in order[8:]] for order in orders)


def test_the_cases_that_were_handed_over_stay_as_they_are():
    cases = [3, 1, 2]
    visits(cases, 3, 0)
    assert cases == [3, 1, 2]


# --- blocks of calls, on a clock that is told what time it is ------------------------------------


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
        monkeypatch.setattr(sampling, "time", stopped)
        return clock

    return tell


def test_the_cost_of_the_clock_is_that_of_one_reading(told):
    told(0, 70)
    assert sampling.clock_cost_ns() == pytest.approx(70, rel=0.02)


@pytest.mark.parametrize("call_ns", [20_000_001, 50_000_000, 20_000_000_000])
def test_a_slow_call_is_one_block_of_one_call(told, call_ns):
    clock = told(call_ns)
    plan = sampling.plan_blocks(clock.call, itertools.repeat(()), donating=False)
    assert plan == sampling.Grouping(blocks=1, readings=1, number=1, dispatches=1)
    assert clock.calls == 1


@pytest.mark.parametrize("call_ns", [100, 1_000, 9_000])
@pytest.mark.parametrize("effort_s", [0.000_01, 0.001, 0.010])
@pytest.mark.parametrize("reading_ns", [20, 500])
def test_the_clock_is_at_most_a_hundredth_of_a_reading(told, call_ns, effort_s, reading_ns):
    clock = told(call_ns, reading_ns)
    plan = sampling.plan_blocks(clock.call, itertools.repeat(()), False, effort_s)
    assert (plan.blocks, plan.dispatches) == (sampling.BLOCKS, sampling.DISPATCHES)
    assert reading_ns <= sampling.CLOCK_SHARE * plan.number * call_ns * 1.02


@pytest.mark.parametrize("call_ns", [100, 1_000, 20_000])
def test_all_blocks_take_about_the_time_asked_for(told, call_ns):
    clock = told(call_ns)
    plan = sampling.plan_blocks(clock.call, itertools.repeat(()), False, 0.010)
    assert plan.blocks * plan.readings * plan.number * call_ns == pytest.approx(1e7, rel=0.05)


@pytest.mark.parametrize("donating", [False, True])
def test_what_is_timed_is_nanoseconds_per_call(told, donating):
    clock = told(1_000, 50)
    plan = sampling.Grouping(blocks=4, readings=7, number=100, dispatches=8)
    arguments = ((number,) for number in itertools.count())
    timed = sampling.time_blocks(clock.call, arguments, plan, donating)
    assert timed.dispatched == [1_050.0] * 8
    assert timed.finished == [pytest.approx(1_000.5)] * 4
    assert timed.spent_ns == 8 * 1_050 + 4 * 7 * 100_050
    assert clock.calls == 8 + 4 * 7 * 100


def test_a_block_gives_its_least_reading(told):
    clock = told(0, 0)
    costs = iter([900, 300, 500, 400, 200, 600])

    def call(*_):
        clock.now_ns += next(costs)
        return 0.0

    timed = sampling.time_blocks(call, itertools.repeat(()), sampling.Grouping(2, 3, 1, 0), False)
    assert timed.finished == [300, 200]


def test_a_donating_call_gets_arguments_of_its_own(told):
    clock = told(1_000)
    arguments = ((number,) for number in itertools.count())
    sampling.time_blocks(clock.call, arguments, sampling.Grouping(4, 5, 2, 8), donating=True)
    assert clock.arguments == [(number,) for number in range(48)]


@pytest.mark.parametrize(
    ("nbytes", "calls"), [(sampling.DONATED_BYTES * 2, 1), (sampling.DONATED_BYTES // 3, 3)]
)
@pytest.mark.parametrize("call_ns", [1_000, 100_000])
def test_fresh_buffers_of_a_block_are_bounded(told, nbytes, calls, call_ns):
    clock = told(call_ns)
    large = types.SimpleNamespace(nbytes=nbytes)
    plan = sampling.plan_blocks(clock.call, itertools.repeat((large,)), donating=True)
    assert plan.readings * plan.number == calls
    free = sampling.plan_blocks(clock.call, itertools.repeat((large,)), False)
    assert free.readings * free.number > 3


# --- when to stop ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "ranks"),
    # The ranks of a table of 95 % intervals of the median, counted from 0.
    [(1, None), (5, None), (6, (0, 5)), (8, (0, 7)), (9, (1, 7)), (10, (1, 8)), (12, (2, 9))],
)
def test_the_interval_of_the_median_is_that_of_the_tables(n, ranks):
    assert median_interval_ranks(n) == ranks


def test_nothing_has_no_interval():
    assert median_interval_ranks(0) is None
    assert not is_narrow([])


@given(st.integers(1, 300), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_interval_covers_the_median_and_no_narrower_one_would(n, level):
    def coverage(k):
        return 1 - 2 * binom.cdf(k, n, 0.5)

    ranks = median_interval_ranks(n, level)
    if ranks is None:
        assert coverage(0) < level
    else:
        low, high = ranks
        assert high == n - 1 - low
        assert coverage(low) >= level
        assert coverage(low + 1) < level


@pytest.mark.parametrize("n", [6, 8, 20])
def test_samples_of_a_skewed_distribution_are_covered_as_promised(n):
    rng = random.Random(20200229)
    low, high = median_interval_ranks(n)
    covered = 0
    for _ in range(4_000):
        values = sorted(rng.lognormvariate(0, 1) for _ in range(n))  # whose median is 1
        covered += values[low] <= 1 <= values[high]
    assert covered / 4_000 >= 0.945


def test_a_median_is_narrow_when_half_its_interval_is_a_small_part_of_it():
    assert is_narrow([100, 101, 102, 103, 104, 105])
    assert not is_narrow([100, 101, 102, 103, 104])  # too few for an interval
    assert not is_narrow([80, 101, 102, 103, 104, 120])
    assert is_narrow([80, 101, 102, 103, 104, 120], share=0.2)
