"""Whole nights on a suite of one workload, in the environment that the tests run in."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys

import pytest

from tests.asv.project import ENV, MACHINE, Project, wait_for
from tests.forks import finished
from tests.nightly.nights import TINY, begin, nightly, outcome, summary, words
from tests.started import TOKEN, of

FIRST, SECOND = "2026-11-20", "2026-11-21"

FAILING = """

class Broken(Workload):
    targets = ("cpu",)
    process_stages = False

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        raise ValueError("broken | on <purpose>")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project after its first night, and what that printed."""
    project = Project(tmp_path_factory.mktemp("nights"), {"tiny": TINY})
    project.printed, _ = nightly(project, night=FIRST, effort="2x1")
    return project


@pytest.fixture
def copy(project, tmp_path):
    """The same project, which a test may spoil."""
    other = Project(tmp_path, {"tiny": TINY})
    shutil.rmtree(other.folder)
    shutil.copytree(project.folder, other.folder)
    return other


def test_a_first_night_measures_counts_its_rows_and_has_nothing_to_compare_with(project):
    night = summary(project, FIRST)
    (one,) = night.measured
    assert (night.exit_code, night.machine, night.effort) == (0, MACHINE, "2x1")
    assert (one.environment, one.run_exit_code, one.against) == (ENV, 0, "")
    assert (one.rows["ok"], one.failures, one.counts) == (7, [], {})
    assert {record.night for record in project.records()} == {FIRST}


def test_the_summary_is_printed_and_stored_and_names_no_path_of_this_machine(project):
    own = project.results / MACHINE / "nights" / FIRST
    assert project.printed == (own / "summary.md").read_text()
    assert f"# Night {FIRST} on {MACHINE}" in project.printed
    assert (own / "report.html").exists()
    assert not (own / "issue.md").exists()
    for file in own.iterdir():
        if file.suffix not in (".log", ".html"):
            assert str(project.folder) not in file.read_text(), file


@pytest.mark.nightly
def test_a_night_that_is_stopped_and_killed_leaves_no_process_and_ends_as_one_that_ran_through(
    project, copy, monkeypatch
):
    # `python -m tools.nightly_kills` kills one at twenty random moments.
    token = secrets.token_hex()
    monkeypatch.setenv(TOKEN, token)
    whole = outcome(project, FIRST)
    records, nights = (copy.results / MACHINE / name for name in ("records", "nights"))
    shutil.rmtree(records)
    shutil.rmtree(nights)
    running = begin(copy, night=FIRST, effort="2x1")
    wait_for((nights / FIRST / f"{ENV}.log").exists)
    os.kill(running.pid, signal.SIGINT)
    done = finished(running, 60)
    assert done.returncode == 130, done.stderr
    assert of(token) == []
    running = begin(copy, night=FIRST, effort="2x1")
    wait_for(lambda: records.is_dir() and any(records.iterdir()))
    with running:
        running.kill()
    wait_for(lambda: not of(token), 5)
    assert not (nights / FIRST / "summary.json5").exists()
    monkeypatch.delenv(TOKEN)
    nightly(copy, night=FIRST, effort="2x1")
    assert outcome(copy, FIRST) == whole


def test_a_second_night_is_compared_with_the_first_and_names_what_fails_or_is_missing(copy):
    before = len(copy.records())
    nightly(copy, night=FIRST, effort="2x1")
    assert len(copy.records()) == before, "a finished night measures nothing again"
    copy.write("benchmarks/tiny.py", TINY.replace("Scale", "Other") + FAILING)
    copy.commit()
    printed, _ = nightly(copy, night=SECOND, effort="2x1", code=3)
    (one,) = summary(copy, SECOND).measured
    assert one.against == FIRST
    assert {failure.status for failure in one.failures} == {"failed", "missing"}
    assert {f.workload for f in one.failures if f.status == "missing"} == {"tiny.Scale"}
    assert "broken \\| on &lt;purpose&gt;" in printed
    # A night of another effort says nothing of what this one has to have.
    printed, _ = nightly(copy, night="2026-11-22", effort="1x1", code=3)
    assert summary(copy, "2026-11-22").measured[0].against == ""


@pytest.mark.nightly
def test_what_broke_since_the_last_good_night_is_the_gravest_and_makes_an_issue(copy):
    broken = TINY.replace("return 2 * x", 'raise ValueError("no")')
    copy.write("benchmarks/tiny.py", broken)
    copy.commit()
    nightly(copy, night=SECOND, effort="2x1", code=7)
    assert summary(copy, SECOND).measured[0].counts["broken"] > 0
    issue = (copy.results / MACHINE / "nights" / SECOND / "issue.md").read_text()
    assert f"## {ENV} against the night {FIRST}" in issue


def test_the_night_that_is_due_is_the_one_that_was_begun(copy, monkeypatch, command):
    monkeypatch.chdir(copy.folder)
    (copy.results / MACHINE / "nights" / FIRST / "summary.json5").unlink()
    arguments = [one for one in words(night="", effort="2x1")]
    code, printed, _ = command(*arguments)
    assert code == 0
    assert f"# Night {FIRST} on" in printed


@pytest.mark.nightly
def test_an_environment_that_measured_nothing_has_its_own_exit_code(copy):
    printed, _ = nightly(copy, "--", "NoSuchWorkload", night=SECOND, code=5)
    assert "**Nothing was measured in an environment.**" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--python", "nowhere/python"], 5, "--python nowhere/python: No such file"),
        (["--python", "/bin/false"], 5, "--python /bin/false: no answer. Expected an environment"),
        (["--night", "a/b"], 2, "'a/b' is no name for a night"),
        (["--machine", "../up"], 2, "'../up' is no name for a machine"),
        (["--effort", "much"], 2, "'much'"),
    ],
)
def test_wrong_names_are_refused_before_anything_is_measured(
    project, monkeypatch, command, arguments, code, text
):
    monkeypatch.chdir(project.folder)
    ended, _, errors = command(*words(*arguments, night=SECOND))
    assert (ended, text in errors) == (code, True), errors
    assert not (project.results / MACHINE / "nights" / SECOND).exists()


def test_an_environment_without_jax_names_what_it_is_missing(
    project, monkeypatch, command, tmp_path
):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E -I "$@"\n')
    bare.chmod(0o755)
    monkeypatch.chdir(project.folder)
    code, _, errors = command(*words("--python", str(bare), night=SECOND))
    assert code == 5
    assert "harness, jax, jaxlib cannot be imported there" in errors
