"""In which order origins stand: a clock that moved back shuffles nothing."""

import random

from harness.frame.columns import NO_MOMENT
from harness.verdicts.history.points import in_order, lanes, natural


def order(*origins):
    """Origins are (night, commit date, started)."""
    return in_order(*(list(column) for column in zip(*origins, strict=True)))


def test_nights_stand_by_their_names_whatever_the_clock_said():
    assert order(("2026-11-03", 5, 100), ("2026-11-01", 5, 900), ("2026-11-02", 5, 1)) == [1, 2, 0]


def test_numbers_in_names_are_numbers():
    assert order(("n10", 5, 1), ("n9", 5, 2)) == [1, 0]
    assert natural("2026-11-02") < natural("2026-11-10") < natural("2027-01-01")
    assert natural("") < natural("a")


def test_commits_stand_by_their_dates_whatever_the_clock_said():
    assert order(("", 30, 1), ("", 10, 3), ("", 20, 2)) == [1, 2, 0]


def test_one_commit_measured_again_stands_by_the_clock():
    assert order(("", 10, 3), ("", 10, 1), ("", 10, 2)) == [1, 2, 0]


def test_without_commits_the_clock_decides():
    assert order(("", NO_MOMENT, 3), ("", NO_MOMENT, 1)) == [1, 0]


def test_a_night_that_went_back_to_an_old_commit_stays_in_its_place():
    assert order(("n1", 10, 1), ("n2", 20, 2), ("n3", 10, 3), ("n4", 30, 4)) == [0, 1, 2, 3]


def test_what_has_no_night_stands_before_the_first_night_with_a_commit_as_new():
    assert order(("n1", 10, 1), ("n2", 30, 2), ("", 20, 9), ("", 40, 9), ("", 30, 1)) == [
        *(0, 2, 4, 1, 3)
    ]


def test_the_order_does_not_depend_on_how_the_origins_came():
    origins = [(f"n{n}", 10 * (n % 3), -n) for n in range(9)] + [("", n, 0) for n in range(30)]
    expected = [origins[n] for n in order(*origins)]
    random.Random(1).shuffle(origins)
    assert [origins[n] for n in order(*origins)] == expected


def test_an_environment_for_a_newer_release_continues_the_one_before():
    versions = {"a": "0.9.2", "b": "0.10.0", "c": "0.11.0"}
    assert lanes([["a"], ["a"], ["b"], ["c"], ["a"]], versions) == {"a": 0, "b": 0, "c": 0}


def test_environments_measured_side_by_side_do_not():
    versions = {"old": "0.10.0", "dev1": "0.11.0.dev1", "new": "0.11.0", "dev2": "0.12.0.dev2"}
    rounds = [["dev1", "old"], ["old", "dev1"], ["dev2", "new"]]
    assert lanes(rounds, versions) == {"old": 0, "dev1": 1, "new": 0, "dev2": 1}


def test_a_newer_nightly_does_not_take_the_lane_of_a_release_that_goes_on():
    versions = {"old": "0.10.0", "dev1": "0.11.0.dev1", "dev2": "0.11.0.dev2"}
    rounds = [["old", "dev1"], ["dev2"], ["old", "dev2"]]
    assert lanes(rounds, versions) == {"old": 0, "dev1": 1, "dev2": 1}
