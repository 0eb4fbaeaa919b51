"""What is wrong with a declaration of baselines is said before anything is measured."""

import pytest

from harness import Workload, spec
from harness.declare.check import check
from harness.declare.workload import WorkloadError


def declared(**attributes):
    """Return a workload with these attributes; functions become static methods."""

    class Declared(Workload):
        sweep = {"n": [1]}
        static = ("n",)

        def inputs(self):
            return spec((3,)), spec((3,))

        @staticmethod
        def function(a, b, *, n):
            return a + b * n

    for name, value in attributes.items():
        setattr(Declared, name, staticmethod(value) if callable(value) else value)
    return Declared


def right(xp, a, b, *, n):
    return a + b * n


def test_what_is_right_passes():
    check(declared(baseline=right, reference=right, fused_cpu=lambda: None, precisions=("ieee",)))
    check(declared(baseline=lambda xp, *arrays, n: arrays))
    check(declared(baseline=lambda xp, x, y, **keywords: x))


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        (
            {"baseline": lambda a, b, *, n: a},
            r"baseline takes \(a, b, \*, n\); expected \(xp, a, b, n=...\)",
        ),
        ({"baseline": lambda xp, a, b: a}, "static ones by keyword"),
        ({"baseline": lambda xp, a, b, c, *, n: a}, "baseline takes"),
        ({"baseline": 3}, "baseline is 3; expected a static method"),
        ({"baseline": right, "reference": lambda np, a, *, n: a}, "reference takes"),
        ({"baseline": right, "fused_cpu": lambda a, b: a}, "fused_cpu takes .* without parameters"),
        ({"fused_gpu": lambda: None}, "fused_gpu is there without baseline"),
        ({"precisions": ("fp8",)}, r"precisions names 'fp8'\..* There are: ieee, tf32, bf16"),
        ({"precisions": "ieee"}, "precisions is 'ieee'; expected a sequence of names"),
        ({"sweep": {"n": [1], "backend": [1]}}, "'backend' has the name of a column"),
        ({"sweep": {"n": [1], "flops": [1]}}, "'flops' has the name of a column"),
    ],
)
def test_what_is_wrong_is_named(attributes, text):
    with pytest.raises(WorkloadError, match=text):
        check(declared(**attributes))
