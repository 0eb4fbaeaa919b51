"""The command line, as a user types it: what it prints, and the code it exits with."""

import errno
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from harness import cli
from harness.errors import ExitCode
from harness.frame.load import load
from harness.targets import Sighting
from tests.forks import harness, run
from tests.sweeps import SUITES

TROUBLED = ("--benchmarks", str(SUITES / "troubled"))


@pytest.mark.parametrize("words", ["list", "--help", "cache --help", "list --format json"])
def test_where_nobody_reads_on_it_ends_as_other_programs_do(words):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "harness", *words.split()]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (ExitCode.UNREAD, "")
    closed = ["sh", "-c", '"$@" >&-', "sh", *command]  # before it begins: it is not to be read
    done = subprocess.run(closed, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (ExitCode.FINE, "")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A results tree that the command line made, and what it printed."""
    results = tmp_path_factory.mktemp("results")
    done = harness("run", "Scale", "Skipping", "--effort", "2x1", "--results", results, *TROUBLED)
    return results, done


def test_run_prints_progress_with_case_and_stage_then_the_table(measured):
    results, done = measured
    assert done.returncode == 0, done.stderr
    assert "process 1: " in done.stderr
    last = [line for line in done.stderr.splitlines() if line.startswith("[")][-1]
    assert last.startswith("[6/6] ")
    for text in ("small.Scale", "size=16", "compile", "Once per process: import", "bad.Skipping"):
        assert text in done.stdout
    assert done.stdout.startswith("6 measured, 0 measured before and reused, 0 failed or refused.")
    assert "skipped: sixteen is too many" in done.stdout
    assert str(results) in done.stdout


def test_a_second_run_resumes_says_what_filters_leave_out_and_fresh_measures_anew(
    measured, command
):
    given = ("--effort", "2x1", "--results", measured[0], "--case", "size=8", *TROUBLED)
    code, said, left_out = command("run", "Scale|Beside|Skipping", *given)
    assert code == 0
    assert "0 measured, 4 measured before and reused" in said
    assert "harness: left out, no axis 'size': bad.Beside" in left_out
    assert "2 measured, 0 measured before" in command("run", "Scale", "--fresh", *given)[1]


def test_show_prints_the_stage_table_and_where_to_look_next(measured, command):
    code, shown, _ = command("show", "-r", measured[0], "--select", "Scale", "--calls")
    assert code == 0
    assert re.match(r"\w+ takes longest in [12] of 2 cases, most in small.Scale size=", shown)
    assert re.search(r"stage +least +10 % +median +90 % +calls/s +calls", shown)
    assert len(re.findall(r" (?:dispatch|execute) .*\d *$", shown, re.MULTILINE)) == 4
    for text in ("small.Scale", "asv publish", 'harness.load("results")'):
        assert text in shown
    assert "bad.Skipping" not in shown


def test_export_writes_every_row(measured, tmp_path, command):
    results, _ = measured
    output = tmp_path / "deep" / "rows.csv"
    code, _, said = command("export", "-r", results, "-o", output)
    assert code == 0, said
    frame = load(results, all=True)
    read = pd.read_csv(output)
    assert list(read.columns) == list(frame.columns)
    assert len(read) == len(frame)
    assert list(map(json.loads, read["samples"])) == list(frame["samples"])
    assert os.listdir(output.parent) == [output.name], "no scratch file stays"


def test_export_writes_the_rows_that_are_wanted(measured, tmp_path, command):
    rows, few = tmp_path / "rows.parquet", tmp_path / "few.csv"
    code, said, _ = command("export", "-r", measured[0], "-o", rows, "--where", "effort=2x1")
    assert code == 0
    assert f"{len(load(rows, all=True))} rows written to {rows}" in said
    wanted = ("--where", "size=8", "--where", "stage=trace", "--where", "stage=lower")
    assert command("export", "-r", rows, "-o", few, *wanted)[0] == 0
    read = pd.read_csv(few)
    assert (set(read["stage"]), set(read["size"])) == ({"trace", "lower"}, {8})
    for where, expected, text in (
        ("workload=x", 4, "No row in"),
        ("stage", 2, "expected COLUMN=VALUE, such as stage=compile"),
    ):
        code, _, said = command("export", "-r", measured[0], "-o", few, "--where", where)
        assert (code, text in said) == (expected, True), said


def test_a_refused_stage_is_exit_code_3_and_what_has_other_targets_is_said(tmp_path, command):
    code, _, said = command("show", "-r", tmp_path)
    assert (code, "harness run" in said) == (4, True)
    given = ("--effort", "quick", "--results", tmp_path, *TROUBLED)
    code, said, _ = command("run", "Beside", *given)
    assert code == 3
    assert "bad.Beside, trace: refused: 1 sample refused: events show" in said
    assert "1 measured, 0 measured before and reused, 1 failed or refused." in said
    _, said, _ = command("run", "Scale|Beside", "--target", "tpu", *given)
    assert "bad.Beside is left out: its targets are cpu, and not tpu." in said
    code, said, _ = command("run", "Scale", "--target", "tpu", *given)
    assert (code, "n/a" in said) == (4, True)


def test_what_is_wrong_in_a_suite_is_said_and_the_rest_goes_on(tmp_path, command):
    broken = ("--benchmarks", SUITES / "broken")
    done = harness("run", "--effort", "quick", "--results", tmp_path, *broken)
    assert done.returncode == 3
    assert "wrong.py: importing it raised RuntimeError: no luck today." in done.stderr
    assert "static names 'steps', which function does not take" in done.stderr
    assert "failed: misdeclared.Raising" in done.stderr
    assert "ValueError: this workload cannot be traced" in done.stdout
    assert "1 measured" in done.stdout
    code, said, _ = command("list", *broken)
    assert (code, said.count("misdeclared.Right")) == (2, 1)


@pytest.mark.parametrize(
    ("name", "ends", "answer"),
    [
        ("cpu", 0, "1 of 1 target can be used here: cpu."),
        ("tpu", 4, "No such target can be used here."),
    ],
)
def test_targets_begins_with_how_many_can_be_used(name, ends, answer, command, monkeypatch):
    monkeypatch.setattr(
        "harness.targets.survey",
        lambda chosen: [Sighting(name, "", lacking="none" if ends else "")],
    )
    code, said, _ = command("targets", name)
    assert (code, said.splitlines()[0]) == (ends, answer)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "Nope", *TROUBLED], "No workload matches 'Nope'. There are: "),
        (["run", "Sca(le", *TROUBLED], "'Sca(le' is no regular expression"),
        (["run", "Scale", "--effort", "mad", *TROUBLED], "No effort is called 'mad'"),
        (
            ["run", "Scale", "--target", "npu", *TROUBLED],
            "No target is called 'npu'. Did you mean 'tpu'? There are: cpu,",
        ),
        (["run", "Scale", "--case", "size", *TROUBLED], "expected AXIS=VALUE"),
        (["run", "Scale", "--case", "size=9", *TROUBLED], "No case has size=9. The axes and"),
        (["run", "--benchmarks", "nowhere"], "There is no folder of benchmarks at"),
        (["show", "-r", "nowhere"], "There are no results at nowhere"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["run", "--timeout", "-1"], "'--timeout': -1.0 is not in the range x>=0.001."),
        (["run", "--timeout", "soon"], "'--timeout': 'soon' is not a valid number."),
        (["list", "--format", "xml"], "'--format': 'xml' is not one of 'table', 'markdown'"),
        (["--json"], "--json goes with --version"),
    ],
)
def test_wrong_usage_is_exit_code_2_with_what_was_expected(arguments, text, command):
    code, _, said = command(*arguments)
    assert code == 2
    assert text in said
    assert "Traceback" not in said


def test_what_cannot_be_written_is_said(measured, tmp_path, command):
    code, _, said = command("export", "-r", measured[0], "-o", tmp_path / "rows.xlsx")
    assert (code, "ends in .csv or .parquet" in said) == (2, True)
    (tmp_path / "file").touch()
    results = ("--results", tmp_path / "file", "--effort", "quick")
    code, _, said = command("run", "Scale", *results, *TROUBLED)
    assert code == 4
    assert "cannot be written: Not a directory" in said
    assert "Traceback" not in said


def test_an_interrupt_keeps_what_is_finished_and_says_so(tmp_path):
    # A shell makes what it runs in the background ignore Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "harness", "run", "Scale", "--effort", "40x1"),
            *("--results", str(tmp_path), *TROUBLED),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not any(file.stat().st_size for file in tmp_path.glob("*/records/*.jsonl")):
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Finished records are stored; the same command resumes" in said
    assert not load(tmp_path).empty


def test_the_version_is_there_for_programs_too(command):
    code, said, _ = command("--version", "--json")
    assert code == 0
    found = json.loads(said)
    assert found["jax"] == importlib.metadata.version("jax")
    assert sorted(found) == ["harness", "jax", "jaxlib", "python"]


@pytest.mark.parametrize(
    ("typed", "offered"), [("harness com", "compare"), ("harness run --eff", "--effort")]
)
def test_a_shell_completes_commands_and_options(typed, offered):
    asked = {"_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": typed}
    asked["COMP_CWORD"] = str(typed.count(" "))
    program = "from harness.cli import app; app(prog_name='harness')"
    done = run([sys.executable, "-c", program], env={**os.environ, **asked})
    assert f"plain,{offered}" in done.stdout.split()


def test_a_machine_without_git_measures_all_the_same(tmp_path):
    bare = tmp_path / "bin"
    bare.mkdir()
    done = harness(
        *("run", "Scale", "--case", "size=8", "--effort", "quick", "--machine", "here"),
        *("--results", tmp_path / "results", *TROUBLED),
        environment={**os.environ, "PATH": str(bare)},
    )
    assert done.returncode == 0, done.stderr
    frame = load(tmp_path / "results")
    assert set(frame["commit"]) == {""}
    assert frame["commit_date"].isna().all()


def test_an_error_in_the_harness_is_not_taken_for_something_slower(monkeypatch, capsys):
    def broken(**options):
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(cli.app, "main", broken)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == ExitCode.DEFECT != 1
    assert "nobody thought of this" in capsys.readouterr().err


def test_a_disk_that_fails_is_no_error_in_the_harness(monkeypatch, capsys):
    def broken(**options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "/tmp/scratch")

    monkeypatch.setattr(cli.app, "main", broken)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == ExitCode.NOTHING
    [line] = capsys.readouterr().err.splitlines()
    assert "Read-only file system: '/tmp/scratch'. That is the machine's: make room" in line


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
import harness.__main__ as command

class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == "harness.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Impatient())
command.main()
"""


def test_an_interrupt_while_the_command_is_imported_ends_it_as_later_ones_do():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
