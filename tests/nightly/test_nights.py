"""Whole nights on a suite of one workload, in the environment that the tests run in."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal

import pytest

from harness.nightly.state import Nights
from tests.asv.project import ENV, JAX, MACHINE, Project, wait_for
from tests.forks import finished
from tests.nightly.nights import TINY, begin, nightly, outcome, state, words
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
    """A project after its first night; what was said and printed is kept with it."""
    project = Project(tmp_path_factory.mktemp("nights"), {"tiny": TINY})
    project.printed, project.said = nightly(project, "-o", "copied", night=FIRST, effort="2x1")
    return project


@pytest.fixture
def told(monkeypatch, command):
    """Give the command for a night that starts no process; return what `nightly` does."""

    def run(project, *arguments, code=0, **options):
        monkeypatch.chdir(project.folder)
        found, printed, said = command(*words(*arguments, **options))
        assert found == code, said
        return printed, said

    return run


@pytest.fixture
def copy(project, tmp_path):
    """The same project, which a test may spoil."""
    other = Project(tmp_path, {"tiny": TINY})
    shutil.rmtree(other.folder)
    shutil.copytree(project.folder, other.folder)
    return other


def test_a_night_counts_its_rows_and_keeps_every_step(project):
    found = state(project, FIRST)
    assert found.exit_code == 0
    assert found.finished_at_ms is not None
    assert {name: step.status for name, step in found.steps.items()} == {
        "environment installed": "ok",
        "measure installed": "ok",
        "rows": "ok",
        "verdicts": "skipped",
    }
    (one,) = found.environments
    assert (one.env, one.versions["jax"]) == (ENV, JAX)
    assert (one.rows.ok, one.rows.failed, one.rows.missing) == (6, 0, [])
    assert {record.night for record in project.records()} == {FIRST}
    env = f"{ENV}-HARNESS_NIGHT{FIRST}"
    assert project.result("tiny.Scale.track_compile", env=env)["result"][0] > 0


def test_the_summary_is_printed_kept_and_copied_and_names_no_path_of_this_machine(project):
    nights = project.results / MACHINE / "nights"
    own = nights / FIRST
    assert project.printed == (own / "summary.md").read_text()
    assert project.printed == (project.folder / "copied" / "summary.md").read_text()
    assert f"# Night {FIRST} on {MACHINE}" in project.printed
    assert "| installed | python 3." in project.printed
    assert "**fine** (exit code 0)" in project.printed
    assert not (own / "issue.md").exists()
    assert {"*.log", "*.html", ".lock"} <= {*(nights / ".gitignore").read_text().split()}
    for file in [nights / f"{FIRST}.json5", *own.iterdir()]:
        if file.suffix != ".log":
            assert "/" not in file.read_text().replace("and/or", ""), file
    assert f"jax=={JAX}" in (own / "freeze-installed.txt").read_text()


def test_a_finished_night_does_nothing_again(project, told):
    before = state(project, FIRST)
    printed, said = told(project, night=FIRST)
    assert said == f"The night {FIRST} is finished; --night NAME begins another.\n"
    assert printed == project.printed
    assert state(project, FIRST) == before
    _, said = told(project, "-o", "asv.conf.json", night=FIRST, code=4)
    assert "The night's folder cannot be copied to asv.conf.json" in said


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
    wait_for((nights / FIRST / "asv-installed.log").exists)
    os.kill(running.pid, signal.SIGINT)
    done = finished(running, 60)
    assert done.returncode == 130, done.stderr
    assert "the same command resumes" in done.stderr
    assert of(token) == []
    running = begin(copy, night=FIRST)
    wait_for(lambda: records.is_dir() and any(records.iterdir()))
    assert len(of(token)) > 3
    with running:
        running.kill()
    wait_for(lambda: not of(token), 5)
    assert json.loads((nights / f"{FIRST}.json5").read_text())["exit_code"] is None
    monkeypatch.delenv(TOKEN)
    _, said = nightly(copy, night=FIRST)
    assert "goes on as it was begun: effort 2x1, environments installed." in said
    assert outcome(copy, FIRST) == whole


def test_a_second_night_is_compared_with_the_first_and_names_what_fails(copy):
    copy.write("benchmarks/tiny.py", TINY + FAILING)
    copy.commit()
    printed, _ = nightly(copy, night=SECOND, effort="2x1", code=3)
    (verdicts,) = state(copy, SECOND).verdicts
    assert (verdicts.kind, verdicts.against, verdicts.difference) == ("night", FIRST, "")
    assert sum(verdicts.counts.values()) >= 5
    assert f"## installed against the night {FIRST}" in printed
    assert len({record.night for record in copy.records()}) == 2
    assert "**some cases failed, or were not measured** (exit code 3)" in printed
    assert "tiny.Broken trace" in printed
    assert "broken \\| on &lt;purpose&gt;" in printed
    rows = state(copy, SECOND).environments[0].rows
    assert rows.ok_by_workload == {"tiny.Scale": 6}
    assert rows.failed > 0
    # A case that fails every night does not end all comparing.
    assert state(copy, SECOND).good("installed")


def test_a_night_goes_on_as_it_was_begun_and_fewer_rows_than_before_are_a_failure(copy, told):
    folder = copy.results / MACHINE / "nights"
    nights = Nights(copy.results, MACHINE)
    before, now = (nights.read(FIRST) for _ in range(2))
    before.night, before.started_at_ms = "2026-11-19", before.started_at_ms - 1000
    before.environments[0].rows.ok_by_workload["gpu.Gone"] = 5
    nights.save(before)
    del now.steps["rows"]
    now.exit_code = None
    nights.save(now)
    printed, said = nightly(copy, night=FIRST, code=3)
    assert "goes on as it was begun: effort 2x1, environments installed." in said
    assert {record.night for record in copy.records()} == {FIRST}, "nothing is measured again"
    assert "fewer than in the night 2026-11-19: gpu.Gone: 0 ok rows, 5 before" in said
    assert "- installed, fewer than in the night 2026-11-19: gpu.Gone: 0 ok rows" in printed
    # A night that is damaged is told, and not overwritten.
    file = folder / f"{FIRST}.json5"
    file.write_text("{")
    _, said = told(copy, night=FIRST, code=4)
    assert "cannot be read" in said
    assert file.read_text() == "{"


def test_a_night_that_measured_nothing_has_its_own_exit_code(copy):
    printed, _ = nightly(copy, "-b", "NoSuchBenchmark", night=SECOND, code=5)
    assert "**an environment measured nothing** (exit code 5)" in printed
    assert "nothing was measured in installed" in printed
    assert Nights(copy.results, MACHINE).last_good(state(copy, FIRST), "installed") is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--jax", "0.3", "--dry-run"], "--jax 0.3: expected jax 0.10 or later"),
        (["--jax", "latest"], "'latest' is no environment: expected installed, newest, nightly"),
        (["--jax", ","], "--jax names no environment"),
        (["--night", "a/b"], "'a/b' is no name for a night"),
        (["--machine", "../up"], "'../up' is no name for a machine"),
        (["--without", "rows"], "'rows' is no step that can be left out"),
        (["--effort", "much"], "'much'"),
        (["--config", "none.json"], "`harness init` writes one"),
    ],
)
def test_wrong_names_are_told(project, told, arguments, text):
    _, said = told(project, *arguments, night=SECOND, code=2)
    assert text in said
    assert not (project.results / MACHINE / "nights" / f"{SECOND}.json5").exists()


def test_a_dry_run_tells_what_is_done_and_what_is_left(project, told):
    done, _ = told(project, "--dry-run", night=FIRST)
    assert "  measure installed: ok\n" in done
    left, _ = told(project, "--dry-run", night=SECOND, bare=())
    assert [line.strip() for line in left.splitlines()[1:]] == [
        *("environment installed", "probe", "measure installed", "rows", "verdicts"),
        *("history", "report"),
    ]
    assert not (project.results / MACHINE / "nights" / f"{SECOND}.json5").exists()
