from __future__ import annotations

import pytest

from harness.declare.discovery import case_filter, with_axes
from harness.declare.workload import Workload, enumerate_cases, spec
from harness.errors import UsageError


class Sized(Workload):
    sweep = {"size": [16, 32], "dtype": ["float32", "int8"], "shape": [(2, 3), (4,)]}
    targets = ("cpu",)

    def inputs(self, size, dtype, shape):
        return spec(shape, dtype)

    @staticmethod
    def function(x):
        return x


class Unsized(Workload):
    targets = ("cpu", "gpu")

    def inputs(self):
        return spec(())

    @staticmethod
    def function(x):
        return x


def chosen(workload, *choices):
    return [case for case in enumerate_cases(workload) if case_filter(choices)(case)]


def test_without_a_choice_every_case_is_kept():
    assert len(chosen(Sized)) == 8


@pytest.mark.parametrize(
    ("choices", "count"),
    [
        (["size=16"], 4),
        (["size=16", "size=32"], 8),
        (["size=16", "dtype=int8"], 2),
        (["dtype='int8'"], 4),
        (["shape=(2, 3)"], 4),
        ([" size = 16 "], 4),
        (["size=64"], 0),
        (["depth=1"], 0),
        (["target=cpu"], 8),
        (["transform=gradient"], 0),
    ],
)
def test_values_of_one_axis_add_up_and_those_of_several_must_all_hold(choices, count):
    assert len(chosen(Sized, *choices)) == count


@pytest.mark.parametrize("choice", ["size", "=16", ""])
def test_a_choice_is_an_axis_and_a_value(choice):
    said = rf"--case '{choice}': expected AXIS=VALUE, such as size=1024"
    with pytest.raises(UsageError, match=said):
        case_filter([choice])


def test_workloads_without_such_a_case_are_left_out():
    assert with_axes([Sized, Unsized], ["size=16"]) == [Sized]
    assert with_axes([Sized, Unsized], ["target=gpu"]) == [Unsized]
    assert with_axes([Sized, Unsized], []) == [Sized, Unsized]


def test_where_nothing_is_left_the_axes_and_their_values_are_listed():
    said = r"No case has size=64 and dtype=int8\. .* size: 16, 32; dtype: float32, int8; shape: "
    with pytest.raises(UsageError, match=said):
        with_axes([Sized, Unsized], ["size=64", "dtype=int8"])
