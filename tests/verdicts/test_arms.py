"""How users name the arms of a comparison."""

from __future__ import annotations

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import harness
from harness.errors import HarnessWarning, UsageError
from harness.frame import arms
from harness.frame.load import everything
from harness.frame.pairs import pair
from harness.jaxhooks.log_file import sealed
from harness.records.git import commits_named
from tests.frame.trees import COMMIT, record, write, write_asv
from tests.repositories import git
from tests.verdicts.arms_of import OTHER, arm, tree


def two(**second):
    """Return a frame of two arms; the second as `second` says."""
    return pd.concat([arm(), arm(seed=1, **second)], ignore_index=True)


def resolve(text, frame, repository=None):
    return arms.resolve(text, frame, commits_named(repository, text))


def differing(a, b):
    return pair(a, b).on


@pytest.mark.parametrize(
    ("word", "where", "label"),
    [
        (COMMIT[:4], {"commit": COMMIT}, "0123 (commit=01234567)"),
        ("0.11.2", {"jax": "0.11.2"}, "jax=0.11.2"),
        ("fast", {"env": "fast"}, "env=fast"),
        ("box", {"machine": "box"}, "machine=box"),
        ("cpu", {"target": "cpu"}, "target=cpu"),
        ("cold", {"scenario": "cold"}, "scenario=cold"),
        ("2026-11-20", {"night": "2026-11-20"}, "night=2026-11-20"),
        ("night=,jax=0.11.2", None, "night=,jax=0.11.2 (night=none, jax=0.11.2)"),
    ],
)
def test_a_word_is_looked_up_in_the_columns(word, where, label, tmp_path):
    frame = two(jax="0.11.2", env="fast", scenario="cold", night="2026-11-20")
    if where is None:
        frame, where = two(jax="0.11.2"), {"night": "", "jax": "0.11.2"}
    found = resolve(word, frame, tmp_path)

    assert (found.where, found.label) == (where, label)
    for name, value in where.items():
        assert (found.rows[name] == value).all()


def test_what_fits_in_two_ways_is_refused_with_both(tmp_path, monkeypatch):
    (tmp_path / "box").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"'box' may mean \./box or machine=box"):
        resolve("box", arm())
    with pytest.raises(
        UsageError, match=r"'0.11.2' may mean jax=0.11.2 or night=0.11.2. Say which"
    ):
        resolve("0.11.2", two(jax="0.11.2", night="0.11.2"))
    with pytest.raises(UsageError, match="commit=0123 is the beginning of several: 012345678"):
        resolve("commit=0123", two(commit=COMMIT[:6] + "f" * 34))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nowhere", r"nothing in the results. commit: 01234567; jax: 0.10.2"),
        ("jax=9", "jax is 0.10.2, 0.11.2, not 9"),
        ("colour=red", "'colour=red' in the arm 'colour=red' selects nothing"),
        ("jax=1,jax=2", "names jax twice"),
        ("jax=0.11.2,env=no", "env is fast with the rest of the arm, not no"),
        (" ", "An arm is empty"),
        # Longer than any name of a file:
        ("jax=0.10.2,target=cpu,env=" + "e" * 300, r"fits no row: env is .*, not eee"),
    ],
)
def test_arms_that_select_nothing_say_why(text, said, tmp_path):
    with pytest.raises(UsageError, match=said):
        resolve(text, two(jax="0.11.2", env="fast"), tmp_path)


def test_columns_and_axes_select_together_and_a_commit_means_its_clean_tree(tmp_path):
    frame = two(axes={"shape": (1, 2)}, dirty="d1", started_at_ms=1_800_000_000_000)
    for word, expected in (
        ("jax=0.10.2,shape=(1, 2),night=", {"d1"}),
        (COMMIT, {""}),
        (f"commit={COMMIT},dirty=d1", {"d1"}),
    ):
        assert set(resolve(word, frame, tmp_path).rows["dirty"]) == expected


def test_names_of_git_are_those_of_the_repository_of_the_results(tmp_path):
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    git(tmp_path, "tag", "v1")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "two")
    first = git(tmp_path, "rev-parse", "v1")
    frame = two(commit=first)

    assert resolve("v1", frame, tmp_path).where == {"commit": first}
    assert resolve("commit=HEAD~1", frame, tmp_path).where == {"commit": first}
    with pytest.raises(UsageError, match=r"'HEAD' is commit .* which was not measured. Measured"):
        resolve("HEAD", frame, tmp_path)


def test_names_of_git_are_those_of_the_working_directory_where_results_are_in_no_repository(
    tmp_path, monkeypatch
):
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "one")
    (copied := tmp_path / "copied").mkdir()
    monkeypatch.chdir(project)
    frame = two(commit=git(project, "rev-parse", "HEAD"))
    a, b = (resolve(text, frame, copied) for text in ("HEAD", COMMIT))
    assert (len(a.rows), len(b.rows)) == (1, 1)


def test_trees_and_record_files_are_arms(tmp_path):
    folder = tree(tmp_path / "results", factor=1.2)
    old, new = sorted((folder / "box" / "records").iterdir())
    frame = harness.compare(None, str(old), str(new))

    assert frame[frame["stage"] == "compile"]["verdict"].tolist() == ["slower"]
    assert len(harness.compare(None, str(folder), str(folder))) == 1
    (far,) = (tree(tmp_path / "far", machine="far") / "far" / "records").iterdir()
    machines = [resolve(str(one), None) for one in (old, far)]
    assert differing(*machines) == ["machine"]
    assert differing(machines[0], machines[0]) == []
    with pytest.raises(UsageError, match="There are no results to find 'abcd' in"):
        harness.compare(None, "abcd", OTHER)


def test_arms_may_differ_in_what_both_select():
    frame = two(scenario="cold")

    assert differing(resolve("off", frame), resolve("cold", frame)) == ["scenario"]
    assert differing(resolve("jax=0.10.2", frame), resolve("cold", frame)) == []
    compared = harness.compare(frame, "off", "cold").set_index("stage")
    assert compared.loc["compile", ["scenario", "verdict"]].tolist() == ["off → cold", "same"]


def test_a_comparison_can_be_narrowed_and_says_what_is_not_there():
    frame = pd.concat([two(jax="0.11.2"), arm(workload="family.Other")], ignore_index=True)
    arms = (frame, "0.10.2", "0.11.2")

    assert len(harness.compare(*arms, select=["Work"], stages=["compile"], cases=["size=8"])) == 1
    assert len(harness.compare(*arms, stages=["compile"], cases=["size=8", "size=9"])) == 2
    for wrong, said in (
        ({"stages": ["link"]}, "No stage is called 'link'. There are: compile"),
        ({"select": ["nope"]}, "No workload matches 'nope'"),
        ({"cases": ["size=9"]}, "No row has size=9"),
        ({"cases": ["depth=1"]}, "No axis is called 'depth'"),
    ):
        with pytest.raises(UsageError, match=said):
            harness.compare(*arms, **wrong)


def test_of_two_commits_only_their_records_are_decoded(tmp_path):
    commits = ["0" * 40, "1" * 40, "2" * 40]
    for number, commit in enumerate(commits):
        place, axes = tmp_path / "box" / "records", {"size": number}
        write(tmp_path, record(commit=commit), record(1, commit=commit, axes=axes))
        write_asv(tmp_path, {"old.Suite.time_it": [[1.0], [], "v"]}, env="e", commit_hash=commit)
        (tmp_path / "box" / f"{COMMIT[:8]}-e.json").rename(tmp_path / "box" / f"{number}-e.json")
    every = everything(tmp_path)
    strange = next(place.glob("0000*"))
    for line in strange.read_bytes().splitlines():
        changed = line[: line.rindex(b',"crc32"')].replace(b"[1000000.0]", b'["x"]') + b"}"
        strange.write_bytes(sealed(changed) + b"\n")

    some = arms.rows_of_arms(tmp_path, "1111", "commit=2222", {})

    assert some.attrs["problems"]["corrupt"] == 0
    assert {*some["commit"]} == {*commits[1:]}
    assert {*some["workload"]} == {"family.Work", "old.Suite.time_it"}
    for text in ("1111", "2222"):
        one, other = (resolve(text, frame).rows.reset_index(drop=True) for frame in (some, every))
        assert_frame_equal(one, other)
    with pytest.warns(HarnessWarning, match="corrupt line"):
        whole = arms.rows_of_arms(tmp_path, "1111", "3333", {})
    assert {*whole["commit"]} == {*commits}
