from __future__ import annotations

import pytest

import harness
from harness.errors import UsageError
from harness.frame.load import everything
from tests.frame.cases import HOSTILE, case, frame


def built(fingerprint, seconds=0.2, **fields):
    stages = {"trace": 0.01, "lower": 0.02, "compile": seconds}
    return case(stages, **{"fingerprint": fingerprint, **fields})


def sweep():
    """Changing dtype always makes a new program, size never does, and sign sometimes."""
    return frame(
        *(
            built(f"{dtype}{sign if dtype == 'f64' else ''}", axes=axes)
            for dtype in ("f32", "f64")
            for size in (8, 16)
            for sign in (1, 2)
            if (axes := {"dtype": dtype, "size": size, "sign": sign})
        )
    )


def test_a_case_names_the_earlier_one_with_its_program_or_what_made_a_new_one():
    found = harness.recompile_map(sweep())
    assert found["new_program"].tolist() == [True, *[False] * 3, True, True, False, False]
    first = "dtype=f32, size=8, sign=1"
    assert found["same_program_as"].tolist()[:4] == ["", first, first, first]
    assert found["reason"].tolist()[:6] == [
        *("first call", "", "", ""),
        "dtype: f32 → f64",
        "dtype: f32 → f64",
    ]
    assert found["build_s"].tolist() == pytest.approx([0.23] * 8)


def test_by_axis_each_axis_says_whether_changing_it_makes_a_program():
    found = harness.recompile_map(sweep(), by="axis").set_index("axis")
    assert found["new_program"].to_dict() == {
        "dtype": "always",
        "size": "never",
        "sign": "sometimes",
    }
    assert found.loc["dtype", ["n_values", "n_cases", "n_programs"]].tolist() == [2, 8, 8]
    assert found.loc["size", "n_programs"] == 4
    assert found.loc["sign", "n_programs"] == 6


def test_one_program_for_all_values_saves_all_but_the_costliest():
    found = harness.recompile_map(
        frame(*(built(str(size), size, axes={"size": size}) for size in (1, 2, 4))), by="axis"
    ).iloc[0]
    assert found["build_s"] == pytest.approx(7 + 3 * 0.03)
    assert found["saved_s"] == pytest.approx(3 + 2 * 0.03)


def test_transforms_are_an_axis_and_targets_and_scenarios_are_not_compared():
    found = harness.recompile_map(
        frame(
            built("a"),
            built("b", transform="gradient"),
            built("a", target="gpu:h200"),
            built("a", scenario="cold"),
        )
    )
    assert found["new_program"].all()
    assert sorted(found["reason"]) == ["first call"] * 3 + ["transform: forward → gradient"]


def test_cases_without_a_program_are_left_out():
    found = harness.recompile_map(
        frame(
            built("", axes={"size": 1}),
            case({}, status="failed", reason="no", axes={"size": 2}),
            case({"trace": 1.0, "load": 0.1}, scenario="warm"),
            built("a", workload=HOSTILE, axes={"case": [1, "x"], "build_s": None}),
        )
    )
    assert found["workload"].tolist() == [HOSTILE]
    assert found["axis_case"].tolist() == [(1, "x")]
    assert found["build_s"].tolist() == pytest.approx([0.23])


def test_another_way_than_by_case_or_axis_is_refused():
    with pytest.raises(UsageError, match=r"by='stage' is unknown, expected 'case' or 'axis'\."):
        harness.recompile_map(sweep(), by="stage")


def test_every_axis_of_the_committed_results_makes_new_programs():
    found = harness.recompile_map(everything("results"), by="axis")
    assert set(found["new_program"]) == {"always"}
    assert (found["saved_s"] < found["build_s"]).all()
