from __future__ import annotations

from pathlib import Path

import jax
import msgspec
import pytest

from harness.declare import discovery
from harness.errors import UsageError
from harness.ship import cases, symbolic
from harness.ship.symbolic_child import NotSymbolic, symbolic_shapes

SMALL = Path(__file__).parents[1] / "suites" / "troubled"
SHIP = "cache", "ship", "Scale", "--benchmarks", SMALL, "--symbolic", "size"


def scale():
    workload = discovery.one_workload("Scale", SMALL)
    return workload, cases.cases_of(workload)


@pytest.fixture(scope="module")
def report():
    workload = discovery.one_workload("Masked", SMALL.with_name("shipped"))
    return symbolic.compare(workload, cases.cases_of(workload), "size", processes=1, seed=1)


def test_one_export_serves_every_size(report):
    assert (report.shapes, report.reason, report.refused) == (["(b,)", "(b,)", "()"], "", False)
    rows = symbolic.medians(report)
    assert [(row.size, row.refused) for row in rows] == [(8, ""), (16, "")]
    for row in rows:
        assert list(row.direct) == list(row.shipped) == ["trace", "lower", "compile"]
        assert min(*row.direct.values(), *row.shipped.values()) > 0


def test_a_size_that_is_no_multiple_of_the_symbol_is_named():
    def specs(*shapes):
        return [(jax.ShapeDtypeStruct(shape, "float32"),) for shape in shapes]

    assert symbolic_shapes(specs((4, 8, 3), (5, 10, 3)), [4, 5]) == ("(b, 2*b, 3)",)
    with pytest.raises(NotSymbolic, match=r"input 0 has the lengths \[3, 9\] for the sizes"):
        symbolic_shapes(specs((3,), (9,)), [4, 5])


def test_axes_that_are_no_sizes_are_refused():
    workload, known = scale()
    with pytest.raises(UsageError, match=r"has no axis 'batch'; it has size"):
        symbolic.cases_along(workload, known, "batch")
    with pytest.raises(UsageError, match=r"at least two different sizes"):
        symbolic.cases_along(workload, known[:1], "size")


@pytest.mark.parametrize(
    ("refused", "code", "said"),
    [("", 0, "One export of (b,), (b,), ()"), ("another result", 3, "refused: another result")],
)
def test_the_command_prints_a_row_per_size_and_ends_with_3_where_one_is_not_proven(
    report, monkeypatch, command, refused, code, said
):
    first, second = report.sizes[0]
    sizes = [[first, msgspec.structs.replace(second, refused=refused)]]
    found = msgspec.structs.replace(report, sizes=sizes)
    monkeypatch.setattr(symbolic, "compare", lambda *arguments: found)
    ended, out, _ = command(*SHIP)
    assert (ended, said in out) == (code, True)
