"""Steps among numbers: found where they were put, and not where there is only noise."""

import itertools

import numpy as np
import pytest

from harness.verdicts.history.steps import CONFIRMED, NEW, _may_hold_a_step, levels, state

EVEN = np.nan


def noise(count, seed, sigma=0.01):
    return np.exp(np.random.default_rng(seed).normal(0, sigma, count))


def found(values, effect=0.05):
    values = np.asarray(values, float)
    return levels(values, np.full(len(values), EVEN), effect)


def starts(values, effect=0.05):
    return [int(level.positions[0]) for level in found(values, effect)[1:]]


@pytest.mark.parametrize("factor", [1.3, 1 / 1.3])
def test_steps_are_found_where_they_were_put(factor):
    for at, seed in itertools.product((2, 10, 28), range(5)):
        values = noise(30, seed)
        values[at:] *= factor
        assert starts(values) == [at]
    values[:20] *= 3e-6  # at any scale
    values[20:] *= 4e-6
    assert starts(values) == [20, 28]


@pytest.mark.nightly
def test_the_rate_of_change_points_in_pure_noise():
    """On 300 series each: none from 15 points on, at most 3 % where the history is shortest."""
    rates = {
        count: np.mean([bool(starts(noise(count, seed, 0.05))) for seed in range(300)])
        for count in (4, 6, 10, 15)
    }
    assert rates[15] == 0
    assert rates[10] <= 0.01
    assert max(rates.values()) <= 0.03
    assert any(starts(noise(4, seed, 0.3), 0.0) for seed in range(100)), "so it would be noticed"


def test_a_step_below_what_counts_is_none_however_clear():
    values = noise(30, 2, 0.0001)
    values[15:] *= 1.04
    assert starts(values) == []
    assert starts(values, 0.03) == [15]


def test_slow_drift_is_not_lost_between_steps_that_are_too_small():
    values = noise(40, 3, 0.001) * np.repeat([1.0, 1.03, 1.06, 1.09], 10)
    (start,) = starts(values)
    assert start in (10, 20, 30)


def test_an_outlier_is_no_step_and_its_neighbours_are_one_level():
    for at in (10, 0):  # the first night alone is no level either
        values = noise(21, 4)
        values[at] *= 3
        assert starts(values) == []
        (level,) = found(values)
        assert level.value == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize(
    "values",
    [[], [1.0], [1.0, 9.0], [np.nan] * 9, [np.nan, 1, np.nan, 9], [1.0, 2.0, 2.0], [1.0] * 30],
    ids=str,
)
def test_few_points_and_equal_ones_have_no_step_but_three_may_show_a_new_one(values):
    assert starts(values) == []
    assert starts([1.0, 1.0, 2.0]) == [2]


def test_a_step_in_the_last_point_is_new_until_a_second_point_confirms_it():
    values = noise(20, 6)
    values[19:] *= 2
    before, after = found(values)
    assert (len(before.positions), len(after.positions)) == (19, 1)
    assert state(after, True) == NEW
    _, after = found([*values, 2.0])
    assert state(after, True) == CONFIRMED
    assert starts([*values, 1.0]) == []


def test_points_that_are_missing_are_skipped():
    values = noise(20, 7)
    values[10:] *= 1.5
    values[[0, 9, 10, 15]] = np.nan, 0, -1, np.inf
    assert starts(values) == [11]
    before, after = found(values)
    assert (len(before.positions), len(after.positions)) == (8, 8)
    assert before.positions[-1] == 8


def test_a_wide_interval_makes_a_point_count_less():
    values = np.array([1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.01, 1.2, 1.2])
    sure = np.ones(10)
    assert len(levels(values, sure, 0.05)) == 2
    unsure = np.array([*[1.0] * 8, 0.01, 0.01])
    assert len(levels(values, unsure, 0.05)) == 1


@pytest.mark.nightly
def test_what_is_sorted_out_beforehand_would_not_have_been_a_step(monkeypatch):
    """The shortcut never changes an answer: here it is switched off for the same series."""
    rng = np.random.default_rng(8)
    cases = []
    for _ in range(300):
        values = np.exp(rng.normal(0, 0.015, rng.integers(3, 25)))
        values[rng.integers(len(values)) :] *= rng.choice([1.0, 1.06, 1.1, 3.0])
        cases.append(values)
    short = [starts(values) for values in cases]
    sorted_out = [values for values in cases if not _may_hold_a_step(values, 0.05)]
    assert len(sorted_out) > 50
    monkeypatch.setattr("harness.verdicts.history.steps._may_hold_a_step", lambda *_: True)
    assert [starts(values) for values in cases] == short
