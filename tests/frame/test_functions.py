"""What all functions on frames have in common."""

from __future__ import annotations

import pytest

import harness
from harness.errors import UsageError
from harness.records.schema import FIRST_CALL
from tests.frame.cases import case, frame

FUNCTIONS = {
    "phases": (harness.phases, "threads"),
    "cache_effectiveness": (harness.cache_effectiveness, "entry_bytes"),
    "recompile_map": (harness.recompile_map, "fingerprint"),
    "recompile_map by axis": (lambda given: harness.recompile_map(given, by="axis"), "fingerprint"),
    "static_costs": (lambda given: harness.static_costs(given, ["size"]), "unit"),
    "scaling": (lambda given: harness.scaling(given, "size"), "samples"),
}


@pytest.fixture(params=FUNCTIONS)
def function(request):
    return request.param.partition(" ")[0], *FUNCTIONS[request.param]


def measured():
    stages = {"trace": 0.01, "lower": 0.02, "compile": 0.2, "execute": 0.001}
    called = {"axes": {"size": 1}, "protocol": FIRST_CALL}
    return frame(
        *(case(stages, axes={"size": size}) for size in (1, 2)),
        *(case({"first_call": 0.3}, scenario=name, **called) for name in ("cold", "warm")),
    )


def test_an_empty_frame_gives_the_columns_that_a_full_one_gives(function):
    whole, empty = (function[1](given) for given in (measured(), measured().head(0)))
    assert not whole.empty
    assert empty.empty
    assert list(empty.columns) == list(whole.columns)


def test_what_is_no_frame_of_results_is_refused(function):
    name, ask, column = function
    with pytest.raises(UsageError, match=rf"harness\.{name} got a list, expected a frame"):
        ask([])
    with pytest.raises(UsageError, match=rf"{name} got a frame without the column\(s\) {column}"):
        ask(measured().drop(columns=column))
