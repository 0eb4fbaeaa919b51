"""What `harness.load` gives by default, and what is said of the rest."""

import pytest

import harness
from harness.errors import HarnessWarning, UsageError
from harness.frame import choose
from harness.frame.frame import INSTRUMENTS
from harness.frame.load import everything as read
from tests.frame import trees


@pytest.fixture(scope="module")
def everything():
    return harness.load("docs/example-results", all=True)


@pytest.fixture(scope="module")
def frame():
    return harness.load("docs/example-results")


def test_a_first_look_has_nothing_in_it_that_a_pivot_would_throw_together(frame, everything):
    newest = everything.loc[everything["started_at"].idxmax()]
    one = {"commit": newest["commit"], "env": newest["env"], "target": "cpu", "threads": ""}
    assert frame[list(one)].drop_duplicates().to_dict("records") == [one]
    assert "skipped" not in set(frame["status"])
    case = ["workload", "axes", "transform", "precision", "scenario", "stage"]
    assert not frame[~frame["workload"].isin(INSTRUMENTS)].duplicated(case).any()
    assert everything["threads"].nunique() > 1 < everything["target"].nunique()


def test_it_says_what_it_leaves_out(frame, everything):
    left_out = frame.attrs["left_out"]
    assert left_out.startswith(f"{len(everything) - len(frame):,} of {len(everything):,} rows: ")
    for what in ("comparisons with baselines", "newest commit", "compiled for and not run"):
        assert what in left_out
    assert "left_out" not in everything.attrs


def test_a_column_that_is_asked_for_is_narrowed_by_that_alone(everything):
    releases = ["0.11.2", "0.12.0.1"]
    asked = {"target": "gpu:h200", "threads": "one", "env": min(everything["env"]), "jax": releases}
    for name, value in asked.items():
        found = harness.load("docs/example-results", where={name: value})
        assert set(found[name]) == ({*value} if name == "jax" else {value})


def test_columns_are_chosen_of_the_rows_of_a_first_look(frame):
    found = harness.load("docs/example-results", columns=["stage", "width"])
    assert list(found.columns) == ["stage", "width"]
    assert len(found) == len(frame)


def test_who_asks_it_for_more_is_told_where_that_is(frame):
    with pytest.raises(UsageError, match=r"first look, without 2,\d+ of .*harness.load\(all=True"):
        harness.compare(frame, "jax=0.11.2", "jax=0.12.0.1")
    with pytest.warns(HarnessWarning, match=r"first look, .*: see harness.load\(all=True"):
        assert harness.history(frame).empty
    assert not harness.phases(frame)["import_s"].isna().any()


def test_nothing_is_left_out_that_would_leave_nothing(tmp_path):
    trees.write(tmp_path, trees.record(0, {}, status="skipped", reason="no such device"))
    found = harness.load(tmp_path)
    assert set(found["status"]) == {"skipped"}
    assert "left_out" not in found.attrs


@pytest.mark.parametrize("here", ["alpha", "beta"])
def test_the_machine_at_hand_comes_first(here, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_MACHINE", here)
    trees.write(tmp_path, *(trees.record(machine=name) for name in ("alpha", "beta")))
    frame = read(tmp_path)
    order = sorted(["alpha", "beta"], key=lambda name: name != here)
    assert list(choose.here_first(frame)["machine"]) == order
    assert [heading.split()[0] for heading, _ in choose.by_origin(frame)] == order
    assert set(choose.of_one_machine(frame)["machine"]) == {here}
    monkeypatch.setenv("HARNESS_MACHINE", "gamma")
    assert set(choose.of_one_machine(frame)["machine"]) == {"alpha", "beta"}
