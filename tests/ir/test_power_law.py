"""The fit of a power law: its exponent, its interval, and whether it is one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.ir.power_law import fit


def swept(law, sizes=(10, 20, 40, 80), scatter=0.0, n=6):
    rng = np.random.default_rng(0)
    return list(sizes), [(law(size) * np.exp(rng.normal(0, scatter, n))).tolist() for size in sizes]


def fitted(found):
    return fit(*found)


@pytest.mark.parametrize("exponent", [-2.5, -1, 0.5, 3])
def test_an_exact_power_law_gives_its_exponent(exponent):
    row = fitted(swept(lambda size: 1e-4 * size**exponent))
    assert row["exponent"] == pytest.approx(exponent, abs=1e-6)
    assert row["fit"] == "power law"
    assert row["deviation"] == pytest.approx(0, abs=1e-6)
    assert (row["n_values"], row["n_samples"], row["least"], row["most"]) == (4, 24, 10, 80)
    assert row["most_s"] == pytest.approx(1e-4 * 80**exponent)


def test_the_interval_is_that_of_least_squares_on_the_logarithms():
    found = swept(lambda size: 1e-3 * size**2, scatter=0.05)
    row = fitted(found)
    x = np.log(np.repeat([10, 20, 40, 80], 6))
    y = np.log(np.concatenate(found[1]))
    slope, covariance = np.polyfit(x, y, 1, cov=True)
    half = 2.0738730679 * math.sqrt(covariance[0, 0])  # t(0.975) with 22 degrees of freedom
    assert row["exponent"] == pytest.approx(slope[0])
    assert (row["low"], row["high"]) == pytest.approx((slope[0] - half, slope[0] + half), rel=1e-4)
    assert row["r2"] == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)


@pytest.mark.parametrize(("sizes", "known"), [((10, 20, 40), True), ((10, 20), False)])
def test_three_samples_have_an_interval_and_two_have_none(sizes, known):
    row = fitted(swept(lambda size: 1e-3 * size, sizes, scatter=0.05, n=1))
    assert row["exponent"] == pytest.approx(1, abs=0.2)
    assert math.isfinite(row["low"]) == math.isfinite(row["high"]) == known


@pytest.mark.parametrize(
    ("law", "scatter", "fit", "least"),
    [
        (lambda size: 1 + 1e-3 * size**2, 0.02, "curved", 0.1),  # a constant, and what grows
        (lambda size: 1e-3 * size, 0.4, "power law", 0.05),
    ],
)
def test_a_curve_is_no_power_law_and_scatter_is_not_taken_for_one(law, scatter, fit, least):
    row = fitted(swept(law, scatter=scatter))
    assert row["fit"] == fit
    assert row["deviation"] > least


def test_equal_times_have_the_exponent_0():
    row = fitted(swept(lambda size: 0.5))
    assert (row["exponent"], row["low"], row["high"], row["fit"]) == (0, 0, 0, "power law")
    assert math.isnan(row["r2"])


@pytest.mark.parametrize(("sizes", "fit"), [((10, 20), "two values"), ((10,), "one value")])
def test_fewer_than_three_values_are_named(sizes, fit):
    row = fitted(swept(lambda size: 1e-3 * size, sizes, scatter=0.01))
    assert (row["fit"], row["n_values"]) == (fit, len(sizes))
    assert math.isnan(row["exponent"]) == (fit == "one value")


def test_samples_that_are_not_positive_are_left_out_and_without_any_there_is_no_fit():
    row = fit([1, 2, 4, 8], [[1.0], [2.0, math.nan], [4.0, -1.0, 0.0], [math.inf]])
    assert (row["n_values"], row["n_samples"], row["exponent"]) == (3, 3, pytest.approx(1))
    assert fit([1, 2], [[0.0], []]) == {}
