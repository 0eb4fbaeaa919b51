"""Two arms are measured in turns, each in its own folder, and looked at now and then."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

import harness
from harness.cli.compare import measured
from harness.cli.options import duration
from harness.errors import HarnessError, UsageError
from harness.frame.load import frame_of
from harness.measure.outcome import Turns
from harness.output.comparison import legend
from harness.output.explanation import explained
from harness.records.environment import env_name
from harness.records.store import Store, store_path
from harness.stages.sampling import effort
from harness.verdicts.live.arm import LiveArm, parse
from harness.verdicts.live.comparison import compare_live
from harness.verdicts.live.rounds import (
    LiveOptions,
    difference_problems,
    may_be_decided,
    next_look,
    share,
    with_equal_code,
)
from harness.verdicts.statistics import estimates
from harness.workload.filters import Filters
from tests import forks
from tests.repositories import git
from tests.verdicts.arms_of import records

BENCHMARK = """
import ours
from harness import Workload, spec

class Scale(Workload):
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return ours.function(x) * ours.FACTOR


class Other(Scale):
    text = "{function}"  # another version of it, so it is closed from the first look on
"""


UNHEARD = "set:JAX_ENABLE_COMPILATION_CACHE=1"
"""The scenario decides on the persistent cache, whatever the environment says."""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with a package, a folder of benchmarks and two commits that differ."""
    top = tmp_path / "project"
    benchmarks = top / "benchmarks"
    benchmarks.mkdir(parents=True)
    (top / "src").mkdir()
    git(top, "init", "-q", "-b", "main")
    for function, factor in (("sin", 2), ("cos", 3)):
        (benchmarks / "scale.py").write_text(BENCHMARK.format(function=function))
        (top / "src" / "ours.py").write_text(
            f"from jax.numpy import {function} as function\nFACTOR = {factor}\n"
        )
        git(top, "add", "-A")
        git(top, "commit", "-q", "-m", function)
    monkeypatch.chdir(top)
    return top


def options(**fields) -> LiveOptions:
    """Return how to measure a project's workloads in as few processes as can be."""
    return LiveOptions(effort(fields.pop("effort", "1x1")), machine="box", seed=1, **fields)


def run_live(a, b, *rest, **named):
    """Compare two arms that texts describe."""
    return compare_live((parse(a), parse(b)), *rest, **named)


def only(frame, stage="compile"):
    """Return the one row of a stage of the workload."""
    rows = frame[(frame["workload"] == "scale.Scale") & (frame["stage"] == stage)]
    assert len(rows) == 1
    return rows.iloc[0]


def interrupted_at(message_number, told):
    """Return what is told of progress, and presses Ctrl-C at one message."""

    def on_progress(message):
        told.append(message)
        if len(told) == message_number:
            raise KeyboardInterrupt

    return on_progress


def test_two_commits_are_measured_in_turns_and_what_was_stopped_goes_on(project, monkeypatch):
    told, arms, results = [], ("HEAD~1", f"HEAD,{UNHEARD}"), project / "results"
    stopped = run_live(*arms, options(effort="2x1"), results, on_progress=interrupted_at(6, told))
    assert stopped.problems == [("variable", "JAX_ENABLE_COMPILATION_CACHE", "1", "B", "0")]
    assert (stopped.stopped, stopped.rounds, stopped.limit) == (True, 1, 2)
    assert told[0].turns == Turns(look=2, limit=2, round_s=None, most_s=None)
    assert [one.turns.round_s > 0 for one in told[1:] if one.turns] == [True]

    whole = run_live(*arms, options(effort="2x1"), results, on_progress=told.append)
    assert (whole.stopped, whole.problems) == (False, [])
    assert whole.folder == stopped.folder
    assert sorted(p.name for p in whole.folder.glob("round*")) == ["round-1", "round-2"]
    first, second = map(only, map(frame_of, whole.records))
    assert first["commit"] != second["commit"]
    assert first["fingerprint"] != second["fingerprint"]  # own benchmarks, own packages
    assert first["n_processes"] == second["n_processes"] == 2
    assert [only(frame_of(own), "compute")["n_processes"] for own in whole.records] == [2, 2]
    for of_arm in whole.records:
        own = {record.replicate[-2:] for record in of_arm if record.workload == "scale.Other"}
        assert own == {"#1"}
    assert whole.records[0][0] == stopped.records[0][0]
    told = [message for message in told if message.workload]  # none of what others have left
    assert [message.done for message in told] == [0, 1, 2, 2, 2, 3, 4]
    assert {message.case for message in told} == {"A", "B", ""}
    assert "open" not in told[0].workload
    assert "rows open" in told[-2].workload
    done = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 1

    told = []  # that one has ended: nothing is missing
    again = run_live(*arms, options(effort="2x1"), results, on_progress=told.append)
    assert (again.rounds, again.folder) == (2, whole.folder)
    assert not [message for message in told if message.workload]
    pd.testing.assert_frame_equal(again.comparison.frame, whole.comparison.frame)
    with pytest.raises(KeyboardInterrupt):  # another one, which has nothing yet
        run_live(*arms, options(effort="3x1"), results, on_progress=interrupted_at(2, []))


@pytest.mark.nightly
def test_a_module_that_can_no_longer_be_imported_is_broken_until_it_can(project):
    benchmarks, results = project / "benchmarks", project / "results"
    whole = (benchmarks / "scale.py").read_text().partition("\n\nclass Other")[0]
    (benchmarks / "scale.py").write_text(whole)
    (benchmarks / "fine.py").write_text(whole.replace("Scale", "Fine"))
    (project / "harness").mkdir()  # not what measures: the folder of the arm holds one of its own
    (project / "harness" / "__init__.py").write_text("raise ImportError('the wrong harness')")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "fine")
    (benchmarks / "scale.py").write_text(f"import no_such_module{whole}")
    frame = run_live("HEAD", ".", options()).comparison.frame
    reason = "failed; importing it raised ModuleNotFoundError: No module named 'no_such_module'."
    broken = frame[frame["verdict"] == "broken"]
    assert set(broken["workload"]) == {"scale.Scale"}
    assert set(broken["detail"]) == {reason}
    assert set(broken["target"]) == {"cpu"}
    assert set(frame["workload"]) == {"scale.Scale", "fine.Fine"}

    shutil.rmtree(project / "harness")
    path = os.pathsep.join([str(project / "src"), os.environ.get("PYTHONPATH", "")])
    for text, code in ((f"import no_such_module{whole}", 3), (whole, 0)):
        (benchmarks / "scale.py").write_text(text)
        command = [sys.executable, "-m", "harness", "run", "--effort", "quick", "fine.Fine"]
        done = forks.run([*command, "-r", str(results)], env={**os.environ, "PYTHONPATH": path})
        assert done.returncode == code, done.stderr
        assert ("scale" in set(harness.load(str(results), all=True)["workload"])) is (code == 3)


@pytest.mark.nightly
def test_the_command_measures_what_filters_leave_with_the_flags_of_each_arm(project, capsys):
    b_text = "set:XLA_FLAGS=--xla_cpu_enable_fast_math=true"
    filters = Filters(("scale.Scale",), stage=("load",), target=("cpu",), scenario=("warm",))
    rest = (Path("results"), LiveOptions(effort("1x1"), Path("benchmarks"), filters, 1))
    comparison, records = measured(".", b_text, *rest)
    for of_arm in records:
        assert {(record.target, record.scenario) for record in of_arm} == {("cpu", "warm")}
        assert "scale.Scale" in {record.workload for record in of_arm}
    a, b = comparison.pairs.a, comparison.pairs.b
    assert "fast_math" not in only(a.rows, "load")["environment"]
    assert "--xla_cpu_enable_fast_math=true" in only(b.rows, "load")["environment"]
    (folder,) = project.glob("results/*/live/*-1")
    assert not [*folder.rglob("*.json")], "asv would warn of each that it is none of its results"
    assert sorted(p.name for p in (folder / "round-1").iterdir()) == ["a", "b"]
    said = capsys.readouterr().err
    assert f"records: {folder.relative_to(project)}" in said
    assert "the arms' flags differ, but XLA built the same program for every case" in said
    others = [msgspec.structs.replace(one, fingerprint="of fast math") for one in records[1]]
    arms = [LiveArm("."), parse(b_text)]
    assert list(difference_problems(arms, [records[0], others])) == []
    (text,) = explained(comparison, records, narrowed=True)
    assert text.count("scale.Scale@cpu/warm#1: ") == 2
    assert "no records at hand" not in text
    assert "B takes longer; the processes of both sides took turns" in " ".join(legend(comparison))

    same = (parse("."), parse("."))
    (problem,) = difference_problems(same, (records[0], records[0]))
    assert problem == ("identical",)
    with pytest.raises(UsageError, match=r"'scenario=off' is of scenario=off, which --scenario"):
        measured("scenario=off", ".", *rest)


def test_an_arm_that_cannot_be_measured_ends_the_comparison(project):
    with pytest.raises(HarnessError, match=r"Arm [AB] \(set:XLA_FLAGS=--no_such_flag\) cannot"):
        run_live("set:XLA_FLAGS=--no_such_flag", "set:XLA_FLAGS=--no_such_flag", options())
    with pytest.raises(UsageError, match="has no commit 'none'"):
        run_live("none", ".", options())
    with pytest.raises(HarnessError, match="No workload matches 'Nothing'"):
        run_live(".", "HEAD", options(filters=Filters(select=("Nothing",))))


def looks_of(limit):
    """Return after how many rounds is looked where everything stays open."""
    looks = [0]
    while looks[-1] < limit:
        looks.append(next_look(looks[-1], limit))
    return looks[1:]


@pytest.mark.parametrize(
    ("limit", "looks"),
    [
        *((1, [1]), (2, [1, 2]), (4, [1, 4]), (5, [1, 5]), (6, [1, 4, 6]), (8, [1, 4, 8])),
        (17, [1, 4, 8, 12, 17]),
    ],
)
def test_looks_are_after_one_round_and_every_four_and_the_last_at_the_limit(limit, looks):
    assert looks_of(limit) == looks


@pytest.mark.parametrize("looks", [[8], [4, 8], [4, 5, 8], [1, 2, 3, 4, 5, 6, 7, 8]])
def test_all_looks_together_may_err_as_often_as_one(looks):
    spent = [share([look / 8 for look in looks[: n + 1]]) for n in range(len(looks))]
    assert sum(spent) == pytest.approx(1)
    assert all(a <= b for a, b in itertools.pairwise(spent)) or looks == [4, 5, 8]


@pytest.mark.parametrize(
    ("low", "high", "rounds", "looks", "may"),
    [
        (0.3, 3.0, 4, [0.5], False),  # chance hides whatever it is, and four more leave it so
        (0.9, 1.3, 4, [0.5], True),  # may turn out slower
        (0.8, 1.25, 4, [0.5], True),  # may turn out equal
        (0.8, 1.25, 8, [0.5, 1.0], True),  # there are none left, so none are saved
        (0.3, 3.0, 1, [], True),  # of one round nothing is known yet
    ],
)
def test_rounds_that_can_decide_no_row_are_not_taken(low, high, rounds, looks, may):
    assert may_be_decided(low, high, 0.1, rounds, looks) == may


def test_files_that_differ_in_comments_alone_are_equal_code(tmp_path):
    own = tmp_path / "a", tmp_path / "b"
    texts = {"same.py": ("X = 1", "# one\nX = (1)\n"), "other.py": ("X = 1", "X = 2")}
    texts["data.txt"] = ("1", "1 ")
    for name, both in texts.items():
        for tree, text in zip(own, both, strict=True):
            tree.mkdir(exist_ok=True)
            (tree / name).write_text(text)

    def code(tree):
        hashes = {f"./{name}": hashlib.sha256((tree / name).read_bytes()) for name in texts}
        return {name: one.hexdigest()[:16] for name, one in hashes.items()}

    of_arms = tuple(records(n=1, code=code(tree)) for tree in own)
    a, b = (one[0].code for one in with_equal_code(of_arms, own))
    assert {name for name in a if a[name] != b[name]} == {"./other.py", "./data.txt"}
    (own[1] / "same.py").write_text("X = 3")  # it was edited since it ran
    assert with_equal_code(of_arms, own)[1][0].code["./same.py"] != a["./same.py"]


def test_looking_at_equal_arms_again_and_again_calls_no_more_of_them_different():
    a, b = np.random.default_rng(11).normal(0, 0.05, (2, 2000, 32))
    ever = {True: np.zeros(2000, bool), False: np.zeros(2000, bool)}
    looks = looks_of(32)
    for number, done in enumerate(looks):
        for corrected in ever:
            part = share([one / 32 for one in looks[: number + 1]]) if corrected else 1.0
            found = estimates(a[:, :done], b[:, :done], paired=True, share=part)
            ever[corrected] |= found.p <= 0.05
    assert ever[True].mean() < 0.055
    assert ever[False].mean() > 0.1


def test_two_commits_of_this_repository_are_measured_where_somebody_waits(
    project, command, monkeypatch
):
    edited = project / "benchmarks" / "scale.py"
    edited.write_text("raise RuntimeError('the working tree is not measured')\n")
    monkeypatch.setenv("HARNESS_MACHINE", "box")
    arms = ("compare", "HEAD~1", "HEAD", "--effort", "1x1", "-s", "scale.Scale")
    monkeypatch.delenv("CI", raising=False)
    code, _, err = command(*arms)
    assert (code, "--live" in err) == (2, True)

    monkeypatch.setenv("CI", "true")
    code, out, err = command(*arms, "--time", "5min", "--format", "json")
    document = json.loads(out)
    assert code == 0, err
    assert "At most 1 round, in turns." in err
    assert {row["in_turns"] for row in document["rows"]} == {True}
    assert edited.read_text().startswith("raise RuntimeError")
    assert command(*arms, "--stored")[0] == 2
    assert command(*arms, "--stored", "--time", "1s")[2].count("--stored measures nothing") == 1
    code, out, _ = command("compare", "HEAD~1", "nowhere")
    assert code == 2


def test_rows_that_are_stored_and_decided_are_not_measured_again(project, command, monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("HARNESS_MACHINE", "box")
    commits = [git(project, "rev-parse", name).strip() for name in ("HEAD~1", "HEAD")]
    own = {"env": env_name(), "workload": "scale.Scale", "axes": {}}
    for commit, factor in zip(commits, (1, 1.5), strict=True):
        for one in records(factor, commit=commit, **own):
            path = store_path(project / "results", one.machine, one.commit, one.env, one.night)
            Store(path).append([one])
    code, out, err = command("compare", "HEAD~1", "HEAD", "--stage", "compile")
    assert (code, "in turns" in err) == (1, False)
    # Of another machine they are only read.
    monkeypatch.setenv("HARNESS_MACHINE", "other")
    assert command("compare", "HEAD~1", "HEAD", "--stage", "compile")[:2] == (code, out)


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("1.5 min", 90), ("90", 90), ("2h", 7200)]
)
def test_a_duration_has_a_unit(text, seconds):
    assert duration("--time", text) == seconds
    with pytest.raises(UsageError, match=f"--time '{text}x': expected a number and s, min or h"):
        duration("--time", f"{text}x")


@pytest.mark.nightly
def test_rounds_end_before_the_time_does(project):
    warnings.simplefilter("ignore")
    short = run_live("HEAD~1", "HEAD", options(effort="8x1", time_s=0.1))
    assert short.rounds == 1
