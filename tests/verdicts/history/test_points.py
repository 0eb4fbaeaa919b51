"""In which order points stand, whatever a clock said, and how much each counts."""

import itertools

import numpy as np
import pandas as pd
import pytest

from harness.frame.columns import NO_MOMENT
from harness.verdicts.history.points import in_order, lanes, weights


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        ([("2026-11-03", 5, 100), ("2026-11-01", 5, 900), ("2026-11-02", 5, 1)], [1, 2, 0]),
        ([("n10", 5, 1), ("n9", 5, 2)], [1, 0]),
        ([("n1", 20, 1), ("n1", 10, 2)], [1, 0]),
        ([("", 30, 1), ("", 10, 3), ("", 20, 2)], [1, 2, 0]),
        ([("", 10, 3), ("", 10, 1), ("", 10, 2)], [1, 2, 0]),
        ([("", NO_MOMENT, 3), ("", NO_MOMENT, 1)], [1, 0]),
        ([("n1", 10, 1), ("n2", 20, 2), ("n3", 10, 3), ("n4", 30, 4)], [0, 1, 2, 3]),
        ([("n1", 10, 1), ("n2", 30, 2), ("", 20, 9), ("", 40, 9), ("", 30, 1)], [0, 2, 4, 1, 3]),
    ],
    ids=[
        "nights by their names, whatever the clock said",
        "numbers in names are numbers",
        "within a night commits by their dates",
        "commits by their dates, whatever the clock said",
        "one commit measured again by the clock",
        "without commits by the clock",
        "a night that went back to an old commit stays in its place",
        "what has no night before the first night with a commit as new",
    ],
)
def test_origins_stand_in_order_however_they_came(origins, expected):
    """Origins are (night, commit date, started)."""
    for turned in itertools.permutations(range(len(origins))):
        columns = zip(*(origins[n] for n in turned), strict=True)
        assert [turned[n] for n in in_order(*map(list, columns))] == expected


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


def test_a_wider_interval_counts_less_and_a_narrow_one_at_most_twice():
    def of(*widths):
        found = pd.DataFrame({"series": 0, "piece": 0, "low": 1.0, "high": 1.0 + np.array(widths)})
        return weights(found).tolist()

    usual, other, wide, narrow = of(1.0, 1.0, 3.0, 1e-9)
    assert np.array([other, wide, narrow]) / usual == pytest.approx([1, 0.5, 2])
    assert of(1.0, np.nan, 1.0) == pytest.approx([0.5, np.nan, 0.5], nan_ok=True)
    assert np.isnan(of(0.0, 0.0)).all(), "equal samples"
