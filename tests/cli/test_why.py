"""`harness show --why`: which code a row stands for, told by a sweep of code that is edited."""

import json

import pytest

from tests.forks import harness
from tests.frame.trees import record, write

WORKLOAD = """\
from benchmarks.helper import function as helped
from harness import Workload, spec


class Helped(Workload):
    sweep = {"size": [8, 16]}
    targets = ("cpu",)
    function = staticmethod(helped)

    def inputs(self, size):
        return spec((size,))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Two processes, an edit, and another sweep that measured the first of them again."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks/__init__.py").touch()
    (folder / "benchmarks/edited.py").write_text(WORKLOAD)
    helper = folder / "benchmarks/helper.py"
    for text, effort in (("x + 1", "2x1"), ("x + 2", "1x1")):
        helper.write_text(f"def function(x):\n    return {text}\n")
        done = harness("run", "--effort", effort, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_it_says_what_ran_what_is_left_out_and_that_the_next_run_reuses_it(project):
    shown = harness("show", "--why", cwd=project)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "edited.Helped (2 cases)"
    assert max(map(len, lines)) <= 80
    said = {line[2:10].strip(): line[12:] for line in lines if line[2:3].strip()}
    assert said["git"] == "none"
    assert said["measured"] == "the files where they are; 1 process of 1 sweep"
    assert said["code"] == "3, as they are here now"
    assert said["left out"] == "process 1, which ran other code: ./benchmarks/helper.py"
    assert said["replaced"] == "earlier processes, which ran other code: ./benchmarks/helper.py"
    assert said["next run"] == "reused, if workload and environment are as they were"


def test_what_is_other_code_now_is_marked_in_text_and_json(project):
    helper = project / "benchmarks/helper.py"
    before = helper.read_text()
    helper.write_text("def function(x):\n    return x + 3\n")
    try:
        shown = harness("show", "--why", "--case", "size=8", cwd=project)
        document = harness("show", "--why", "--format", "json", cwd=project)
    finally:
        helper.write_text(before)
    assert "edited.Helped size=8\n" in shown.stdout
    assert "            * ./benchmarks/helper.py  " in shown.stdout
    assert "next run  measured again: ./benchmarks/helper.py changed" in shown.stdout
    first, _ = json.loads(document.stdout)
    (other,) = [one for one in first["code"] if one["now"] != one["digest"]]
    assert other["name"] == "./benchmarks/helper.py"
    assert first["left_out"] == {"1": ["./benchmarks/helper.py"]}


def test_records_of_before_and_a_distribution_that_is_gone(tmp_path, command):
    write(tmp_path, record(0, version="old"), record(0, code={"gone==1.0": "a", "jax==0.1": "b"}))
    _, shown, _ = command("show", "--why", "-r", tmp_path)
    assert "measured again: it is not recorded which code ran" in shown
    assert "* gone==1.0 (now unreadable)" in shown
    assert "* jax==0.1 (now 0." in shown
    assert "measured again: gone==1.0, jax==0.1 changed" in shown


def test_files_of_rows_do_not_say_what_ran(project, tmp_path, command):
    rows = tmp_path / "rows.parquet"
    assert command("export", project / "results", "-o", rows)[0] == 0
    code, _, said = command("show", "--why", "-r", rows)
    assert code == 4
    assert "files of rows do not say what code ran" in said
