"""What `asv run` says where it measures nothing, nothing new, or not yet; `asv rm`."""

import contextlib
import os

import pytest

from harness.measure import lock
from tests.asv.project import SCALE, Project

QUICK = {"HARNESS_FIRST_CALLS": "0"}
BAD = SCALE.replace("return 2 * x", "raise ValueError('no such mesh')")
OTHERS = SCALE + "\n\ndef track_bad():\n    raise OSError('no such disk')\n"


def said_by_us(said):
    """Return what the harness said in asv's output, without what other killed commands left."""
    lines = [line.partition("harness: ")[2] for line in said.splitlines()]
    return [line for line in lines if line and not line.startswith(("removed ", "ended "))]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("verbs"), {"scale": SCALE})
    made.first = made.run("--quick", **QUICK)
    return made


def test_a_run_of_which_all_failed_says_why_in_a_line_and_does_not_end_with_0(tmp_path):
    project = Project(tmp_path, {"bad": BAD})
    (line,) = said_by_us(project.run("--quick", code=2, **QUICK))
    assert line.startswith("nothing was measured: ValueError: no such mesh (at bad.py:")


@pytest.mark.nightly
def test_it_says_so_of_a_suite_that_cannot_be_imported_there_and_of_plain_benchmarks(tmp_path):
    project = Project(tmp_path, {"scale": OTHERS})
    said = project.run("--quick", "-b", "track_bad", code=2, **QUICK)
    assert said_by_us(said) == []  # asv's own, which says it itself
    said = project.run("--quick", "-b", "track_(bad|trace)", code=2, **QUICK)
    assert said_by_us(said) == []  # one of two
    (line,) = said_by_us(
        project.run("--quick", "-b", "Scale.track_", code=2, HARNESS_FIRST_CALLS="many")
    )
    assert line.startswith("nothing was measured: ")
    assert "HARNESS_FIRST_CALLS is 'many'" in line


def test_what_asv_removed_and_records_still_have_is_named_where_they_answer(project):
    assert said_by_us(project.first) == []
    before = project.records("scale.Scale")
    project.asv("rm", "-y", f"commit_hash={project.head}")
    (line,) = said_by_us(project.run("--quick", **QUICK))
    assert line.startswith("scale.Scale: measured before, and taken from records")
    assert project.records("scale.Scale") == before
    project.asv("rm", "-y", "benchmark=scale.Scale.track_trace")
    assert said_by_us(project.run("--quick", HARNESS_FRESH="1", **QUICK)) == []
    assert project.records("scale.Scale") != before


@pytest.mark.nightly
def test_who_waits_for_another_measurement_says_so_on_the_terminal(project, fresh_processes):
    with contextlib.ExitStack() as held:
        held.enter_context(lock.alone([lock.processor()], lambda holder: None))
        (line,) = said_by_us(project.run("--quick", code=1, HARNESS_WAIT="0", **QUICK))
        assert "measures on this machine" in line
        waiting = project.start("run", "-E", "existing", "--set-commit-hash", "HEAD", "--quick")
        shown = b""
        while b"harness: waiting: " not in shown:  # asv ends a line when it begins the next
            part = os.read(waiting.stdout.fileno(), 4096)
            assert part, shown
            shown += part
        held.close()
        waiting.communicate(timeout=200)
    assert waiting.returncode == 0


@pytest.mark.nightly
def test_what_works_again_is_named_where_only_changed_leaves_it_out(tmp_path):
    project = Project(tmp_path, {"plain": AGAIN.format(body="raise OSError('no such disk')")})
    first = project.head
    project.run(code=2)
    project.write("benchmarks/plain.py", AGAIN.format(body="return 1"))
    project.commit()
    project.run()
    assert said_by_us(project.asv("compare", first, "HEAD")) == []
    (line,) = said_by_us(project.asv("compare", first, "HEAD", "--only-changed"))
    assert line.startswith(f"plain.track_bad: failed at {first}, and has a value at HEAD")


AGAIN = """
def track_bad():
    {body}


track_bad.version = "1"
"""


def test_results_under_a_commit_that_is_not_the_working_tree_are_reported_once(tmp_path):
    project = Project(tmp_path, {"plain": AGAIN.format(body="return 1")})
    assert said_by_us(project.run()) == []
    project.write("benchmarks/plain.py", AGAIN.format(body="return 2"))
    (line,) = said_by_us(project.run())
    assert line.startswith(f"the working tree is not commit {project.head[:8]}, which results are")
    assert "benchmarks/plain.py" in line
    first = project.head
    project.commit()
    assert said_by_us(project.run()) == []
    (line,) = said_by_us(project.asv("run", "-E", "existing", "--set-commit-hash", first))
    assert f"not commit {first[:8]}" in line
