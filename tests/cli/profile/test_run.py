"""What is said before and after a program was run, and the exit code that it makes."""

from __future__ import annotations

import io

import pytest
from click.testing import CliRunner
from rich.console import Console

from harness.cli.profile import app, told
from harness.errors import UsageError
from harness.profiles.answer.summary import summary
from harness.profiles.causes.cause import Cause
from harness.profiles.recorded import read
from harness.report import files
from harness.watch.programs import Ran
from tests.profiles.made import Made

BUDGET = '[default]\nmax_compiles = 2\n[functions."train.py:gone"]\nmax_compiles = 1\n'


@pytest.fixture
def budget(tmp_path):
    path = tmp_path / "budgets.toml"
    path.write_text(BUDGET)
    return path


def built(folder, times):
    made = Made()
    for _ in range(times):
        made.build("loss", cause=Cause("static value", "steps", "1", "2"))
    return made.write(folder)


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--budget", "x = [", "is not TOML"),
        ("--budget", "[total]\nmax_compile = 1", "Did you mean 'max_compiles'?"),
        ("--budget", None, "There is no budget file"),
    ],
)
def test_a_budget_that_is_not_understood_is_refused_before_the_program_runs(
    tmp_path, monkeypatch, option, text, said
):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "b.toml").write_text(text)
    done = CliRunner().invoke(app, [option, "b.toml", "--", "-c", "open('ran', 'w')"])
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert {path.name for path in tmp_path.iterdir()} <= {"b.toml"}


def test_a_report_that_cannot_be_made_is_refused_before_the_program_runs(tmp_path, monkeypatch):
    def check():
        raise UsageError("The report needs altair")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "check_report", check)
    done = CliRunner().invoke(app, ["--report", "r.html", "--", "-c", "open('ran', 'w')"])
    assert isinstance(done.exception, UsageError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("times", "code", "expected", "said"),
    [
        (2, 0, 0, "Within the budget: 1 limit."),
        (3, 0, 1, "Over the budget: 1 of 1 limit."),
        (3, 5, 5, "Over the budget: 1 of 1 limit."),
    ],
)
def test_the_budget_is_judged_and_said(tmp_path, capfd, budget, times, code, expected, said):
    folder = built(tmp_path / "p", times)
    assert told.tell(Ran(folder, code, 1, True), budget, None) == expected
    text = capfd.readouterr().err
    assert said in text
    assert '[functions."train.py:gone"] means no function that was built' in text
    assert ("3 compiles of `loss`" in text) == (times == 3)
    assert "\\x0a" not in text


def test_a_budget_without_a_profile_is_not_kept_to(tmp_path, capfd, budget):
    assert told.tell(Ran(tmp_path, 0, 0, True), budget, None) == 4
    assert "cannot be checked without a profile" in capfd.readouterr().err
    assert told.tell(Ran(tmp_path, 0, 0, True), None, tmp_path / "r.html") == 4
    assert told.tell(Ran(tmp_path, 3, 0, True), budget, None) == 3
    assert told.tell(Ran(tmp_path, 0, 0, True), None, None) == 4


def test_nothing_in_a_name_moves_the_cursor_or_becomes_a_picture(tmp_path, capfd):
    made = Made().build("a\x1b[2J:smile:", cause=Cause("first"))
    told.tell(Ran(made.write(tmp_path / "p"), 0, 1, True), None, None)
    assert "a\\x1b[2J:smile:" in capfd.readouterr().err


def test_the_answer_fits_the_terminal_it_is_shown_on(tmp_path):
    made = Made()
    for number in range(40):
        for _ in range(2):
            made.build(f"a_long_name_of_a_function_{number}", line=number, called=number)
    profile = read(made.write(tmp_path / "p"))
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80, height=20)
    lines = told.answer(profile, terminal, below=2)
    assert len(lines) <= 18
    assert all(len(line) <= 80 for line in lines if "harness profile" not in line)
    assert any("other finding" in line for line in lines)
    whole = told.answer(profile)  # in a pipe, or a log of CI
    assert whole == summary(profile, lines=None)
    assert all(any(f"function_{number}`" in line for line in whole) for number in range(40))


OPENED = """
import sys
import jax, jax.numpy as jnp

@jax.jit
def dear(x):
    for n in range(8):
        x = jnp.tanh(x) * jnp.sort(x, axis=n % 2) + n
    return x

@jax.jit
def own(x):
    return x * 2

print(dear(jnp.ones((8, 8))).shape)
with jax.profiler.trace(sys.argv[1]):
    own(3.0).block_until_ready()
print("done")
"""


def test_inside_says_what_xla_did_and_leaves_a_program_its_own_profiler(tmp_path, capfd):
    file, folder = tmp_path / "opened.py", tmp_path / "p"
    file.write_text(OPENED)
    command = ["--inside", "-o", str(folder), "--", str(file), str(tmp_path / "own")]
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, capfd.readouterr().out) == (0, "(8, 8)\ndone\n")
    err = done.output
    said = err[err.index("Inside of compiles, by XLA's events") :]
    place, what = said.splitlines()[1:3]
    assert place.endswith(f"dear, {file.name}:15") or place.endswith(f"dear, {file}:15")
    assert "code generation" in said
    assert "%" in what
    assert ", own" not in said, "what the program itself was profiling is its own"
    assert list((tmp_path / "own").rglob("*.xplane.pb"))
    (traced,) = [one for one in read(folder).builds if one.function.name == "dear"]
    files_of = list((folder / "inside").iterdir())
    assert all(one.name.endswith(".xplane.pb") for one in files_of), files_of
    files_of[0].write_bytes(b"cut off")
    text = CliRunner().invoke(app, ["show", str(folder)]).output
    assert "Inside of compiles" in text
    assert traced.process.ended.failures[0].startswith("RuntimeError")
