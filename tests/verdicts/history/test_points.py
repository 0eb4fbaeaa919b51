"""In which order points stand, whatever a clock said, and how much each counts."""

import random

import numpy as np
import pandas as pd
import pytest

from harness.frame.columns import NO_MOMENT
from harness.verdicts.history.points import in_order, lanes, natural, weights


def order(*origins):
    """Origins are (night, commit date, started)."""
    return in_order(*(list(column) for column in zip(*origins, strict=True)))


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        ([("2026-11-03", 5, 100), ("2026-11-01", 5, 900), ("2026-11-02", 5, 1)], [1, 2, 0]),
        ([("n10", 5, 1), ("n9", 5, 2)], [1, 0]),
        ([("", 30, 1), ("", 10, 3), ("", 20, 2)], [1, 2, 0]),
        ([("", 10, 3), ("", 10, 1), ("", 10, 2)], [1, 2, 0]),
        ([("", NO_MOMENT, 3), ("", NO_MOMENT, 1)], [1, 0]),
        ([("n1", 10, 1), ("n2", 20, 2), ("n3", 10, 3), ("n4", 30, 4)], [0, 1, 2, 3]),
        (
            [("n1", 10, 1), ("n2", 30, 2), ("", 20, 9), ("", 40, 9), ("", 30, 1)],
            [0, 2, 4, 1, 3],
        ),
    ],
    ids=[
        "nights by their names, whatever the clock said",
        "numbers in names are numbers",
        "commits by their dates, whatever the clock said",
        "one commit measured again by the clock",
        "without commits by the clock",
        "a night that went back to an old commit stays in its place",
        "what has no night before the first night with a commit as new",
    ],
)
def test_origins_stand_in_order(origins, expected):
    assert order(*origins) == expected


def test_numbers_in_names_are_numbers():
    assert natural("2026-11-02") < natural("2026-11-10") < natural("2027-01-01")
    assert natural("") < natural("a")


def test_the_order_does_not_depend_on_how_the_origins_came():
    origins = [(f"n{n}", 10 * (n % 3), -n) for n in range(9)] + [("", n, 0) for n in range(30)]
    expected = [origins[n] for n in order(*origins)]
    random.Random(1).shuffle(origins)
    assert [origins[n] for n in order(*origins)] == expected


VERSIONS = {
    **{"a": "0.9.2", "b": "0.10.0", "c": "0.11.0"},
    **{"old": "0.10.0", "dev1": "0.11.0.dev1", "new": "0.11.0", "dev2": "0.12.0.dev2"},
}


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        ([["a"], ["a"], ["b"], ["c"], ["a"]], {"a": 0, "b": 0, "c": 0}),
        (
            [["dev1", "old"], ["old", "dev1"], ["dev2", "new"]],
            {"old": 0, "dev1": 1, "new": 0, "dev2": 1},
        ),
        ([["old", "dev1"], ["dev2"], ["old", "dev2"]], {"old": 0, "dev1": 1, "dev2": 1}),
    ],
    ids=["newer releases go on", "not side by side", "no nightly in a release that goes on"],
)
def test_an_environment_continues_the_one_before_unless_they_were_measured_side_by_side(
    rounds, expected
):
    assert lanes(rounds, VERSIONS) == expected


def with_widths(widths):
    count = len(widths)
    return pd.DataFrame(
        {
            "series": [0] * count,
            "piece": [0] * count,
            "low": [1.0] * count,
            "high": [1.0 + width for width in widths],
        }
    )


def test_a_wider_interval_counts_less_and_a_narrow_one_at_most_twice():
    found = weights(with_widths([1.0, 1.0, 3.0, 1e-9]))
    assert found / found[0] == pytest.approx([1, 1, 0.5, 2])


def test_without_an_interval_there_is_no_weight():
    found = weights(with_widths([1.0, np.nan, 1.0]))
    assert np.isnan(found[1])
    assert found[0] == found[2]


def test_equal_samples_have_no_weight_and_do_not_divide_by_nothing():
    assert np.isnan(weights(with_widths([0.0, 0.0]))).all()
