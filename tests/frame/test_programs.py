"""Which cases share a program, and which axes are static."""

from __future__ import annotations

import pytest

import harness
from harness.workload.workload import Workload, spec
from tests.frame.cases import case, frame


def built(seconds=0.2, **fields):
    return case({"trace": 0.01, "lower": 0.02, "compile": seconds}, **fields)


def dtypes():
    """Changing dtype always makes a new program, size never does, and sign sometimes."""
    return frame(
        *(
            built(fingerprint=f"{dtype}{sign if dtype == 'f64' else ''}", axes=axes)
            for dtype in ("f32", "f64")
            for size in (8, 16)
            for sign in (1, 2)
            if (axes := {"dtype": dtype, "size": size, "sign": sign})
        )
    )


def test_a_case_names_the_earlier_one_with_its_program_or_what_made_a_new_one():
    found = harness.recompile_map(dtypes())
    assert found["new_program"].tolist() == [True, *[False] * 3, True, True, False, False]
    first, change = "dtype=f32, size=8, sign=1", "dtype: f32 → f64"
    assert found["same_program_as"].tolist()[:4] == ["", first, first, first]
    assert found["reason"].tolist()[:6] == ["first call", "", "", "", change, change]
    assert found["build_s"].tolist() == pytest.approx([0.23] * 8)


def test_transforms_are_an_axis_and_targets_and_scenarios_are_not_compared():
    others = {"fingerprint": "b", "transform": "gradient"}, {"target": "gpu:h200"}
    cases = ({}, *others, {"scenario": "cold"})
    found = harness.recompile_map(frame(*(built(**{"fingerprint": "a", **one}) for one in cases)))
    assert found["new_program"].all()
    assert sorted(found["reason"]) == ["first call"] * 3 + ["transform: forward → gradient"]


def test_cases_without_a_program_are_left_out():
    known = built(fingerprint="a", axes={"size": 2})
    lacking = case({"trace": 1.0, "load": 0.1}, scenario="warm")
    found = harness.recompile_map(frame(built(fingerprint="", axes={"size": 1}), lacking, known))
    assert found["size"].tolist() == [2]


class Unrolled(Workload):
    """A workload with a static axis, to be measured."""

    sweep = {"unroll": [1, 2]}
    static = ("unroll",)

    def inputs(self, unroll):
        return spec((4,))

    @staticmethod
    def function(x, *, unroll):
        for _ in range(unroll):
            x = x * 2
        return x


def test_a_sweep_records_which_axes_are_static():
    found = harness.sweep(Unrolled, effort="quick")
    own = found[found["workload"].str.endswith("Unrolled")]
    assert set(own["static"]) == {"unroll"}
    assert set(found[found["workload"].isin(["process", "reference"])]["static"]) == {""}
