from __future__ import annotations

import pytest

import harness
from harness.declare.workload import Workload, spec
from harness.errors import HarnessWarning, UsageError
from tests.frame.cases import HOSTILE, case, frame


def built(seconds=0.2, **fields):
    return case({"trace": 0.01, "lower": 0.02, "compile": seconds}, **fields)


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
    assert eight["n_values"].tolist() == [3] * 3
    assert eight["same_program"].tolist() == [False] * 3


def test_a_value_that_changes_nothing_is_marked():
    found = harness.static_costs(
        frame(
            built(axes={"form": 1}, fingerprint="a", static=["form"]),
            built(axes={"form": 2}, fingerprint="a", static=["form"]),
            built(axes={"form": 3}, fingerprint="", static=["form"]),
        )
    )
    assert found["same_program"].tolist() == [False, True, None]


def test_axes_may_be_named_for_all_workloads_or_by_workload():
    one = sweep()
    assert harness.static_costs(one, ["size"])["static_value"].tolist().count(8) == 3
    assert len(harness.static_costs(one, {"family.Work": ["unroll", "size"]})) == 12
    assert harness.static_costs(one, {}).empty


def test_without_a_static_axis_in_the_records_a_warning_says_how_to_name_them():
    with pytest.warns(HarnessWarning, match=r"No record of this frame names a static axis"):
        assert harness.static_costs(sweep()).empty


def test_axes_and_workloads_that_are_not_there_are_refused():
    with pytest.raises(UsageError, match=r"no axis 'steps'\. It has: unroll, size\."):
        harness.static_costs(sweep(), ["steps"])
    with pytest.raises(UsageError, match=r"no workload 'Work'\. It has: family\.Work\."):
        harness.static_costs(sweep(), {"Work": ["size"]})
    with pytest.raises(UsageError, match=r"expected names: axes=\['size'\]"):
        harness.static_costs(sweep(), "size")


def test_failed_cases_are_left_out_and_hostile_names_are_kept():
    static = {"static": ["static_value"], "workload": HOSTILE}
    found = harness.static_costs(
        frame(
            built(axes={"static_value": (1, "a")}, **static),
            case({}, status="failed", reason="no", axes={"static_value": 2}, **static),
        )
    )
    assert found["workload"].tolist() == [HOSTILE]
    assert found["static_value"].tolist() == [(1, "a")]
    assert found["axis_static_value"].tolist() == [(1, "a")]


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
