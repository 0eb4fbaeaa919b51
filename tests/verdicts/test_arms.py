"""How users name the arms of a comparison."""

from __future__ import annotations

import subprocess

import pandas as pd
import pytest

import harness
from harness.errors import UsageError
from harness.verdicts.arms import differing, resolve
from tests.frame.trees import COMMIT
from tests.verdicts.arms_of import OTHER, arm, tree


def two(**second):
    """Return a frame of two arms; the second as `second` says."""
    return pd.concat([arm(), arm(seed=1, **second)], ignore_index=True)


@pytest.mark.parametrize(
    ("word", "where"),
    [
        (COMMIT[:4], {"commit": COMMIT}),
        ("0.11.2", {"jax": "0.11.2"}),
        ("fast", {"env": "fast"}),
        ("box", {"machine": "box"}),
        ("cpu", {"target": "cpu"}),
        ("cold", {"scenario": "cold"}),
        ("2026-11-20", {"night": "2026-11-20"}),
    ],
)
def test_a_word_is_looked_up_in_the_columns(word, where, tmp_path):
    frame = two(jax="0.11.2", env="fast", scenario="cold", night="2026-11-20")
    found = resolve(word, frame, tmp_path)

    assert found.where == where
    assert (found.rows[next(iter(where))] == next(iter(where.values()))).all()


def test_a_word_that_fits_in_two_ways_is_refused_with_both():
    with pytest.raises(
        UsageError, match=r"'0.11.2' may mean jax=0.11.2 or night=0.11.2. Say which"
    ):
        resolve("0.11.2", two(jax="0.11.2", night="0.11.2"))


def test_a_word_that_is_also_a_path_is_refused(tmp_path, monkeypatch):
    (tmp_path / "box").mkdir()
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match=r"'box' may mean \./box or machine=box"):
        resolve("box", arm())


def test_a_word_that_fits_nothing_is_refused_with_what_there_is(tmp_path):
    with pytest.raises(UsageError, match=r"nothing in the results. commit: 01234567; jax: 0.10.2"):
        resolve("nowhere", arm(), tmp_path)


def test_the_beginning_of_two_commits_is_refused():
    frame = two(commit=COMMIT[:6] + "f" * 34)

    with pytest.raises(UsageError, match="commit=0123 is the beginning of several: 012345678"):
        resolve("commit=0123", frame)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jax=9", "jax is 0.10.2, 0.11.2, not 9"),
        ("colour=red", "'colour=red' in the arm 'colour=red' selects nothing"),
        ("jax=1,jax=2", "names jax twice"),
        ("jax=0.11.2,env=no", "env is fast with the rest of the arm, not no"),
        (" ", "An arm is empty"),
    ],
)
def test_arms_that_select_nothing_say_why(text, said):
    with pytest.raises(UsageError, match=said):
        resolve(text, two(jax="0.11.2", env="fast"))


def test_columns_and_axes_select_together_and_a_tuple_may_hold_commas():
    frame = two(axes={"shape": (1, 2)}, jax="0.11.2")

    assert len(resolve("jax=0.11.2,shape=(1, 2),night=", frame).rows) == 1


def test_names_of_git_are_those_of_the_repository_of_the_results(tmp_path):
    def git(*arguments):
        whole = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e", *arguments]
        return subprocess.run(whole, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    git("tag", "v1")
    git("commit", "-q", "--allow-empty", "-m", "two")
    first = git("rev-parse", "v1")
    frame = two(commit=first)

    assert resolve("v1", frame, tmp_path).where == {"commit": first}
    assert resolve("commit=HEAD~1", frame, tmp_path).where == {"commit": first}
    with pytest.raises(UsageError, match=r"'HEAD' is commit .* which was not measured. Measured"):
        resolve("HEAD", frame, tmp_path)


def test_a_commit_means_its_clean_tree_where_that_was_measured(tmp_path):
    changed = two(dirty="d1", started_at_ms=1_800_000_000_000)

    assert set(resolve(COMMIT, changed, tmp_path).rows["dirty"]) == {""}
    assert set(resolve(f"commit={COMMIT},dirty=d1", changed, tmp_path).rows["dirty"]) == {"d1"}


def test_trees_and_record_files_are_arms(tmp_path):
    folder = tree(tmp_path / "results", factor=1.2)
    old, new = sorted((folder / "box" / "records").iterdir())
    frame = harness.compare(None, str(old), str(new))

    assert frame[frame["stage"] == "compile"]["verdict"].tolist() == ["slower"]
    assert len(harness.compare(None, str(folder), str(folder))) == 1


def test_arms_may_differ_in_what_both_select_and_in_the_machine_of_files():
    frame = two(scenario="cold")

    assert differing(resolve("off", frame), resolve("cold", frame)) == ["scenario"]
    assert differing(resolve("jax=0.10.2", frame), resolve("cold", frame)) == []


def test_scenarios_are_compared_with_each_other():
    frame = harness.compare(two(scenario="cold"), "off", "cold")
    row = frame[frame["stage"] == "compile"].iloc[0]

    assert (row["scenario"], row["verdict"]) == ("off → cold", "same")


def test_a_comparison_can_be_narrowed_and_says_what_is_not_there():
    frame = two(jax="0.11.2")
    arms = (frame, "0.10.2", "0.11.2")

    assert len(harness.compare(*arms, select=["Work"], stages=["compile"], cases=["size=8"])) == 1
    assert len(harness.compare(*arms, stages=["compile"], cases=["size=8", "size=9"])) == 1
    with pytest.raises(UsageError, match=r"No stage is called 'link'. There are: compile"):
        harness.compare(*arms, stages=["link"])
    with pytest.raises(UsageError, match="No workload matches 'nope'"):
        harness.compare(*arms, select=["nope"])
    with pytest.raises(UsageError, match="No row has size=9"):
        harness.compare(*arms, cases=["size=9"])
    with pytest.raises(UsageError, match="No axis is called 'depth'"):
        harness.compare(*arms, cases=["depth=1"])


def test_an_arm_that_is_longer_than_a_name_of_a_file_is_no_path():
    text = "jax=0.10.2,target=cpu,env=" + "e" * 300
    with pytest.raises(UsageError, match=r"fits no row: env is .*, not eee"):
        resolve(text, arm())


def test_words_without_results_are_refused():
    with pytest.raises(UsageError, match="There are no results to find 'abcd' in"):
        harness.compare(None, "abcd", OTHER)
