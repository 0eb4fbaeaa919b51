"""The slope: what is counted, how windows are chosen, and what is thrown away."""

import gc
import itertools

import pytest

from harness.baselines import timing
from harness.baselines.cupy_eager import DRIVER_FILE
from harness.baselines.numpy_side import NumpySide
from harness.baselines.side import l2_cache_bytes
from harness.baselines.timing import attribute, summarise


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(timing, "BUDGET_S", 0.01)


class Scripted(NumpySide):
    """A side on a clock of its own: each call and each wait costs what the script says."""

    def __init__(self, monkeypatch, call_ns, wait_ns, asynchronous=False):
        super().__init__()
        self.asynchronous = asynchronous
        self.now, self.call_ns, self.wait_ns = 0, call_ns, wait_ns
        self.calls, self.waits, self.seen = 0, 0, []
        monkeypatch.setattr(timing, "_clock", lambda: self.now)

    def call(self, argument):
        assert not gc.isenabled()
        self.calls += 1
        self.seen.append(argument)
        self.now += self.call_ns
        return argument

    def wait(self, result):
        self.waits += 1
        self.now += self.wait_ns


@pytest.mark.parametrize(("asynchronous", "slope"), [(False, 12_000), (True, 10_000)])
def test_the_slope_cancels_the_constants_of_waiting(monkeypatch, asynchronous, slope):
    side = Scripted(monkeypatch, 10_000, 2_000, asynchronous)
    times = timing.measure(side, side.call, [(1,)])
    assert set(times.slope) == {slope}
    assert set(times.latency) == {12_000}
    assert set(times.dispatch) == {10_000}
    assert len(times.slope) == timing.SAMPLES
    assert times.number > 1
    each = timing.SINGLES if asynchronous else side.calls
    assert side.waits == each + 2 * timing.PAIRS, "one for each window, besides"


def test_the_sets_of_inputs_take_turns_across_windows(monkeypatch):
    side = Scripted(monkeypatch, 1_000_000, 0)
    timing.measure(side, side.call, [(1,), (2,), (3,)])
    assert side.seen == [1 + index % 3 for index in range(side.calls)]


def test_a_visit_keeps_to_its_budget_and_a_slow_call_runs_at_least_in_both_windows():
    for once_ns in (100, 10_000, 1e6, 1e7):
        short, long, pairs = timing.plan(once_ns, 0.3)
        assert short < long
        assert (short + long) * pairs * once_ns < 0.6e9
        assert long * once_ns > 1e6 or long >= 2
    assert timing.plan(5e9, 0.3) == (1, 2, 1)


def test_a_pair_whose_long_window_was_not_longer_is_counted_and_thrown_away(monkeypatch):
    side = Scripted(monkeypatch, 0, 0)
    monkeypatch.setattr(timing, "_clock", itertools.count(0, 1_000).__next__)
    times = timing.measure(side, side.call, [(1,)])
    assert times.slope == []
    assert times.backwards >= 1


def test_results_that_are_not_done_after_waiting_are_counted(monkeypatch):
    side = Scripted(monkeypatch, 10_000, 0)
    side.done = lambda result: False
    times = timing.measure(side, side.call, [(1,)])
    assert times.unfinished == timing.SINGLES + 2 * timing.PAIRS


def test_a_slope_that_is_all_dispatch_is_host_bound():
    assert timing.is_host_bound(timing.Times(dispatch=[9.5, 12.0], slope=[10.0, 10.1, 9.9]))
    assert not timing.is_host_bound(timing.Times(dispatch=[3.0, 12.0], slope=[10.0]))
    assert not timing.is_host_bound(timing.Times(dispatch=[3.0]))


def test_what_disturbs_some_of_the_windows_does_not_reach_the_slope(monkeypatch):
    class Disturbed(Scripted):
        def wait(self, result):
            super().wait(result)
            self.now += 50_000_000 if self.waits % 97 == 0 else 0

    side = Disturbed(monkeypatch, 10_000, 0)
    assert set(timing.measure(side, side.call, [(1,)]).slope) == {10_000}


def test_garbage_is_collected_again_afterwards_even_if_a_call_raises(monkeypatch):
    with pytest.raises(ZeroDivisionError):
        timing.measure(Scripted(monkeypatch, 1, 1), lambda argument: 1 / 0, [(1,)])
    assert gc.isenabled()


# Kernels per call, from the rows of CUPTI

ROWS = [("exp", 2.0), ("sum", 1.0), ("exp", 1.5), ("sum", 1.0)]


def test_the_rows_of_equal_calls_become_launches_and_the_least_time():
    assert summarise(ROWS, 2) == (2, 2.5e6)
    for rows in ([], ROWS[:3], ROWS[:2], ROWS[:1]):
        assert summarise(rows, 2) is None


@pytest.mark.skipif(DRIVER_FILE.exists(), reason="there is a CUDA driver")
def test_without_a_device_nothing_is_attributed_and_the_call_is_not_made():
    made = []
    assert attribute(lambda: made.append(1)) is None
    assert not made
    assert l2_cache_bytes() is None
