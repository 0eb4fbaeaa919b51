from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.workload.discovery import case_filter, with_axes
from harness.workload.workload import Workload, enumerate_cases, spec


class Sized(Workload):
    sweep = {"size": [16, 32], "dtype": ["float32", "int8"], "shape": [(2, 3), (4,)]}
    targets = ("cpu",)

    def inputs(self, size, dtype, shape):
        return spec(shape, dtype)

    @staticmethod
    def function(x):
        return x


@pytest.mark.parametrize(
    ("choices", "count"),
    [
        ([], 8),
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
    assert sum(map(case_filter(choices), enumerate_cases(Sized))) == count


@pytest.mark.parametrize("choice", ["size", "=16", ""])
def test_a_choice_is_an_axis_and_a_value(choice):
    said = rf"--case '{choice}': expected AXIS=VALUE, such as size=1024"
    with pytest.raises(UsageError, match=said):
        case_filter([choice])


def test_workloads_without_such_a_case_are_left_out_and_where_none_is_left_all_are_listed():
    unsized = type("Unsized", (Sized,), {"sweep": {}, "targets": ("cpu", "gpu")})
    assert with_axes([Sized, unsized], ["size=16"]) == [Sized]
    assert with_axes([Sized, unsized], ["target=gpu"]) == [unsized]
    assert with_axes([Sized, unsized], []) == [Sized, unsized]
    said = r"No case has size=64 and dtype=int8\. .* size: 16, 32; dtype: float32, int8; shape: "
    with pytest.raises(UsageError, match=said):
        with_axes([Sized, unsized], ["size=64", "dtype=int8"])
