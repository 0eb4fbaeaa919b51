import math

import numpy as np
import pytest
from scipy import stats

from harness.frame.ratios import ratio_of


def test_the_ratio_is_that_of_the_medians_and_lies_in_its_interval():
    found = ratio_of([20, 22, 21, 20.5], [10, 10.4, 9.8, 10.1])
    assert found.value == pytest.approx(20.75 / 10.05)
    assert 1.8 < found.low < found.value < found.high < 2.3


@pytest.mark.parametrize(
    ("over", "under"), [([2.0, 2.1], [1.0, 1.1, 1.2]), ([2.0, 2.1, 2.2], [1.0])]
)
def test_fewer_than_three_processes_on_a_side_have_no_interval(over, under):
    found = ratio_of(over, under)
    assert found.value > 1.5
    assert np.isnan([found.low, found.high]).all()


def test_values_without_spread_have_an_interval_without_width():
    assert ratio_of([2.0] * 3, [1.0] * 4) == (2.0, 2.0, 2.0)
    assert ratio_of([2.0, 2.0, 2.0 + 1e-15], [1.0] * 3)[1:] == pytest.approx((2, 2))


def test_a_stray_process_widens_the_interval_and_never_pushes_the_ratio_out_of_it():
    over, under = [2.0, 2.1, 1.9, 2.05], [1.0, 1.05, 0.95, 1.02, 0.98]
    calm, stray = (ratio_of([*over, last], under) for last in (1.95, 40.0))
    assert stray.high / stray.low > 4 * calm.high / calm.low
    assert stray.low <= stray.value <= stray.high


@pytest.mark.nightly
@pytest.mark.parametrize("processes", [3, 8])
def test_equal_sides_are_called_different_in_about_five_percent(processes):
    sides = np.exp(np.random.default_rng(7).normal(0, 0.06, (2, 1000, processes)))
    found = [ratio_of(over, under) for over, under in zip(*sides.tolist(), strict=True)]
    assert 0.015 < np.mean([one.low > 1 or one.high < 1 for one in found]) < 0.07


def test_neither_equal_spread_nor_equal_numbers_are_assumed():
    """Welch's interval, by his formula; Student's is another."""
    under, over = np.log([1.0, 1.01, 0.99, 1.0]), np.log([1.1, 1.6, 0.9, 1.4, 1.3, 1.2, 1.5])
    (a, b), (n, m) = (under, over), (4, 7)
    shares = a.var(ddof=1) / n, b.var(ddof=1) / m
    freedom = sum(shares) ** 2 / (shares[0] ** 2 / (n - 1) + shares[1] ** 2 / (m - 1))
    found = ratio_of(np.exp(over), np.exp(under))
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(shares))
    assert math.log(found.low) == pytest.approx(b.mean() - a.mean() - half)
    assert math.log(found.high) == pytest.approx(b.mean() - a.mean() + half)
    student = stats.ttest_ind(over, under).confidence_interval()
    assert abs(math.log(found.low) - student.low) > 0.01
