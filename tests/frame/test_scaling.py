from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness.errors import UsageError
from harness.frame.load import everything
from tests.frame.cases import HOSTILE, case, frame


def swept(law, sizes=(10, 20, 40, 80), stage="execute", scatter=0.0, n=6, **fields):
    rng = np.random.default_rng(0)
    return frame(
        *(
            case(
                {stage: (law(size) * np.exp(rng.normal(0, scatter, n))).tolist()},
                n,
                **{"axes": {"size": size}, **fields},
            )
            for size in sizes
        )
    )


@settings(max_examples=10)
@given(st.floats(-3, 3))
def test_an_exact_power_law_gives_its_exponent(exponent):
    row = harness.scaling(swept(lambda size: 1e-4 * size**exponent), "size").iloc[0]
    assert row["exponent"] == pytest.approx(exponent, abs=1e-6)
    assert row["fit"] == "power law"
    assert row["deviation"] == pytest.approx(0, abs=1e-6)
    assert (row["n_values"], row["n_samples"], row["least"], row["most"]) == (4, 24, 10, 80)
    assert row["most_s"] == pytest.approx(1e-4 * 80**exponent)


def test_the_interval_is_that_of_least_squares_on_the_logarithms():
    found = swept(lambda size: 1e-3 * size**2, scatter=0.05)
    row = harness.scaling(found, "size").iloc[0]
    x = np.log(np.repeat([10, 20, 40, 80], 6))
    y = np.log(np.concatenate(found["samples"].tolist()))
    slope, covariance = np.polyfit(x, y, 1, cov=True)
    half = 2.0738730679 * math.sqrt(covariance[0, 0])  # t(0.975) with 22 degrees of freedom
    assert row["exponent"] == pytest.approx(slope[0])
    assert (row["low"], row["high"]) == pytest.approx((slope[0] - half, slope[0] + half), rel=1e-4)
    assert row["low"] < 2 < row["high"]
    assert row["r2"] == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)


def test_three_samples_have_an_interval_and_two_have_none():
    for sizes, known in (((10, 20, 40), True), ((10, 20), False)):
        found = swept(lambda size: 1e-3 * size, sizes, scatter=0.05, n=1)
        row = harness.scaling(found, "size").iloc[0]
        assert row["exponent"] == pytest.approx(1, abs=0.2)
        assert math.isfinite(row["low"]) == math.isfinite(row["high"]) == known, sizes


def test_a_constant_and_a_term_that_grows_are_no_power_law():
    row = harness.scaling(swept(lambda size: 1 + 1e-3 * size**2, scatter=0.02), "size").iloc[0]
    assert row["fit"] == "curved"
    assert row["deviation"] > 0.1


def test_scatter_alone_is_not_taken_for_a_curve():
    row = harness.scaling(swept(lambda size: 1e-3 * size, scatter=0.4), "size").iloc[0]
    assert row["deviation"] > 0.05
    assert row["fit"] == "power law"


def test_equal_times_have_the_exponent_0():
    row = harness.scaling(swept(lambda size: 0.5), "size").iloc[0]
    assert (row["exponent"], row["low"], row["high"], row["fit"]) == (0, 0, 0, "power law")
    assert math.isnan(row["r2"])


@pytest.mark.parametrize(("sizes", "fit"), [((10, 20), "two values"), ((10,), "one value")])
def test_fewer_than_three_values_are_named(sizes, fit):
    row = harness.scaling(swept(lambda size: 1e-3 * size, sizes, scatter=0.01), "size").iloc[0]
    assert (row["fit"], row["n_values"]) == (fit, len(sizes))
    assert math.isnan(row["exponent"]) == (fit == "one value")


def test_each_combination_of_the_other_axes_and_each_stage_is_fitted_by_itself():
    found = harness.scaling(
        frame(
            *(
                case(
                    {"compile": 0.1 * size**k, "execute": 0.1 * size},
                    axes={"size": size, "dtype": dtype},
                )
                for size in (1, 2, 4)
                for dtype, k in (("f32", 1), ("f64", 2))
            )
        ),
        "size",
    )
    exponents = {(row["dtype"], row["stage"]): row["exponent"] for _, row in found.iterrows()}
    assert exponents == pytest.approx(
        {("f32", "compile"): 1, ("f32", "execute"): 1, ("f64", "compile"): 2, ("f64", "execute"): 1}
    )
    assert "size" not in found.columns


def test_values_that_are_no_positive_numbers_and_cases_that_failed_are_left_out():
    odd = [case({"compile": 9.0}, axes={"size": size}) for size in (0, -1, True, "big", (1, 2))]
    lost = case({}, status="failed", reason="no", axes={"size": 7})
    good = [case({"compile": 0.1 * size}, axes={"size": size}) for size in (2, 4, 8)]
    row = harness.scaling(frame(*odd, lost, *good), "size").iloc[0]
    assert row["n_values"] == 3
    assert row["exponent"] == pytest.approx(1)


def test_one_stage_may_be_asked_for():
    found = swept(lambda size: size, stage="compile")
    assert harness.scaling(found, "size", "compile")["stage"].tolist() == ["compile"]
    with pytest.raises(UsageError, match=r"no measured stage 'execut'\. It has: compile\."):
        harness.scaling(found, "size", "execut")


def test_an_axis_that_is_not_there_or_holds_no_numbers_is_refused():
    found = frame(case({"compile": 1.0}, axes={"size": 1, "dtype": "float32"}))
    with pytest.raises(UsageError, match=r"no axis 'sizes'\. It has: size, dtype\."):
        harness.scaling(found, "sizes")
    with pytest.raises(UsageError, match=r"'dtype' holds no positive numbers .* but 'float32'"):
        harness.scaling(found, "dtype")


def test_axes_named_as_columns_of_the_result_and_hostile_names_are_kept():
    found = swept(lambda size: size, workload=HOSTILE)
    named = found["axes"].str.replace("}", ', "fit": "x"}')
    found = harness.scaling(found.assign(fit="x", axes=named), "size")
    assert found["workload"].tolist() == [HOSTILE]
    assert found["axis_fit"].tolist() == ["x"]
    assert found["fit"].tolist() == ["power law"]


def test_compile_time_of_the_committed_unrolled_loop_grows_with_the_factor():
    frame = everything("results")
    measured = frame[frame["workload"] == "control_flow.UnrolledLoop"].groupby(["commit", "env"])
    found = harness.scaling(frame, "unroll", "compile")
    assert len(found) == measured.ngroups
    assert (found["low"] > 0.1).all()
    assert (found["high"] < 1).all()
