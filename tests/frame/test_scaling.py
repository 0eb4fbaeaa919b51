from __future__ import annotations

import math

import numpy as np
import pytest

import harness
from harness.errors import UsageError
from tests.frame.cases import case, frame


def swept(law, sizes=(10, 20, 40, 80), stage="execute", scatter=0.0, n=6, **fields):
    rng = np.random.default_rng(0)
    taken = {size: law(size) * np.exp(rng.normal(0, scatter, n)) for size in sizes}
    return frame(
        *(
            case({stage: times.tolist()}, n, axes={"size": size}, **fields)
            for size, times in taken.items()
        )
    )


def fitted(found):
    (row,) = harness.scaling(found, "size").to_dict("records")
    return row


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
    y = np.log(np.concatenate(found["samples"].tolist()))
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


def test_each_combination_of_the_other_axes_and_each_stage_is_fitted_by_itself():
    cases = (
        case({"compile": 0.1 * n**k, "execute": 0.1 * n}, axes={"size": n, "dtype": dtype})
        for n in (1, 2, 4)
        for dtype, k in (("f32", 1), ("f64", 2))
    )
    found = harness.scaling(frame(*cases), "size")
    assert "size" not in found.columns
    exponents = found.set_index(["dtype", "stage"])["exponent"].to_dict()
    assert exponents == pytest.approx(
        {("f32", "compile"): 1, ("f32", "execute"): 1, ("f64", "compile"): 2, ("f64", "execute"): 1}
    )


def test_values_that_are_no_positive_numbers_are_left_out():
    odd = [case({"execute": 9.0}, axes={"size": size}) for size in (0, -1, True, "big", (1, 2))]
    good = [case({"execute": 0.1 * size}, axes={"size": size}) for size in (2, 4, 8)]
    row = fitted(frame(*odd, *good))
    assert (row["n_values"], row["exponent"]) == (3, pytest.approx(1))


def test_one_stage_may_be_asked_for():
    found = swept(lambda size: size, stage="compile")
    assert harness.scaling(found, "size", "compile")["stage"].tolist() == ["compile"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("size", "compil"), r"no measured stage 'compil'\. It has: compile\."),
        (("sizes",), r"no axis 'sizes'\. It has: size, dtype\."),
        (("dtype",), r"'dtype' holds no positive numbers .* but 'float32'"),
    ],
)
def test_what_is_not_there_or_holds_no_numbers_is_refused(asked, said):
    found = frame(case({"compile": 1.0}, axes={"size": 1, "dtype": "float32"}))
    with pytest.raises(UsageError, match=said):
        harness.scaling(found, *asked)
