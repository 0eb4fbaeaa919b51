"""Which cases share a program, and what each value of a static axis costs to build."""

from __future__ import annotations

import pytest

import harness
from harness.declare.workload import Workload, spec
from harness.errors import HarnessWarning, UsageError
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


def test_by_axis_each_axis_says_whether_changing_it_makes_a_program():
    found = harness.recompile_map(dtypes(), by="axis")
    columns = ["axis", "new_program", "n_values", "n_cases", "n_programs"]
    assert found[columns].to_numpy().tolist() == [
        *(["dtype", "always", 2, 8, 8], ["size", "never", 2, 8, 4], ["sign", "sometimes", 2, 8, 6])
    ]


def test_one_program_for_all_values_saves_all_but_the_costliest():
    sizes = (built(size, fingerprint=str(size), axes={"size": size}) for size in (1, 2, 4))
    found = harness.recompile_map(frame(*sizes), by="axis").iloc[0]
    assert found["build_s"] == pytest.approx(7 + 3 * 0.03)
    assert found["saved_s"] == pytest.approx(3 + 2 * 0.03)


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


def test_another_way_than_by_case_or_axis_is_refused():
    with pytest.raises(UsageError, match=r"by='stage' is unknown, expected 'case' or 'axis'\."):
        harness.recompile_map(dtypes(), by="stage")


# Static axes


def sweep(**fields):
    return frame(
        *(
            built(unroll / 10, axes={"unroll": unroll, "size": size}, **fields)
            for unroll in (1, 2, 3)
            for size in (8, 16)
        )
    )


def test_a_value_costs_what_it_takes_to_build_and_one_more_the_mean():
    found = harness.static_costs(sweep(static=["unroll"]))
    assert len(found) == 6
    assert set(found["static_axis"]) == {"unroll"}
    eight = found[found["size"] == 8]
    assert eight["static_value"].tolist() == [1, 2, 3]
    assert eight["build_s"].tolist() == pytest.approx([0.13, 0.23, 0.33])
    assert eight["per_value_s"].tolist() == pytest.approx([0.23] * 3)
    assert eight[["n_values", "same_program"]].to_numpy().tolist() == [[3, False]] * 3


def test_a_value_that_changes_nothing_is_marked():
    cases = enumerate(("a", "a", ""))
    found = harness.static_costs(
        frame(*(built(axes={"form": n}, fingerprint=f, static=["form"]) for n, f in cases))
    )
    assert found["same_program"].tolist() == [False, True, None]


def test_axes_may_be_named_for_all_workloads_or_by_workload_and_must_be_where_no_record_does():
    one = sweep()
    assert harness.static_costs(one, ["size"])["static_value"].tolist().count(8) == 3
    assert len(harness.static_costs(one, {"family.Work": ["unroll", "size"]})) == 12
    assert harness.static_costs(one, {}).empty
    with pytest.warns(HarnessWarning, match=r"No record of this frame names a static axis"):
        assert harness.static_costs(one).empty


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        (["steps"], r"no axis 'steps'\. It has: unroll, size\."),
        ({"Work": ["size"]}, r"no workload 'Work'\. It has: family\.Work\."),
        ("size", r"expected names: axes=\['size'\]"),
    ],
)
def test_axes_and_workloads_that_are_not_there_are_refused(axes, said):
    with pytest.raises(UsageError, match=said):
        harness.static_costs(sweep(), axes)


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
    costs = harness.static_costs(found)
    assert costs["static_value"].tolist() == [1, 2]
    assert (costs["build_s"] > 0).all()
