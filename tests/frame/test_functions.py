"""What all functions on frames have in common."""

from __future__ import annotations

import pytest

import harness
from harness.errors import UsageError
from harness.records.schema import FIRST_CALL
from tests.frame.cases import HOSTILE, case, frame

FUNCTIONS = {
    "phases": (harness.phases, "threads", "total_s"),
    "cache_effectiveness": (harness.cache_effectiveness, "entry_bytes", "saved_s"),
    "recompile_map": (harness.recompile_map, "fingerprint", "case"),
}
"""What is asked, a column that it takes, and one that it gives."""


@pytest.fixture(params=FUNCTIONS)
def function(request):
    return request.param, *FUNCTIONS[request.param]


def measured(axes=None, **fields):
    stages = {"trace": 0.01, "lower": 0.02, "compile": 0.2, "execute": 0.001}
    fields["axes"] = {"size": 1, **(axes or {})}
    called = {"protocol": FIRST_CALL, **fields}
    return frame(
        case(stages, **fields),
        case(stages, **fields | {"axes": {**fields["axes"], "size": 2}}),
        *(case({"first_call": 0.3}, scenario=name, **called) for name in ("cold", "warm")),
        case({}, status="failed", reason="no", **fields | {"axes": {"size": 99}}),
    )


def test_an_empty_frame_gives_the_columns_that_a_full_one_gives(function):
    whole, empty = (function[1](given) for given in (measured(), measured().head(0)))
    assert not whole.empty
    assert empty.empty
    assert list(empty.columns) == list(whole.columns)


def test_axes_named_as_columns_and_hostile_names_are_kept_and_failed_cases_left_out(function):
    _, ask, _, name = function
    found = ask(measured({name: (1, "a")}, workload=HOSTILE))
    assert set(found["workload"]) == {HOSTILE}
    assert set(found[f"axis_{name}"]) == {(1, "a")}
    assert 99 not in set(found["size"])


def test_what_is_no_frame_of_results_is_refused(function):
    name, ask, column, _ = function
    with pytest.raises(UsageError, match=rf"harness\.{name} got a list, expected a frame"):
        ask([])
    with pytest.raises(UsageError, match=rf"{name} got a frame without {column}"):
        ask(measured().drop(columns=column))
