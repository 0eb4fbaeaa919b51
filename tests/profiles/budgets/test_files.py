from __future__ import annotations

import pytest
from click.testing import CliRunner

from harness.cli import app
from harness.errors import HarnessError, StoreError, UsageError
from harness.profiles.budgets.file import checked, read, write
from harness.profiles.causes.cause import Cause
from tests.profiles.made import Made

GOOD = """
[total]
max_compiles = 10
max_eager = 5
[default]
max_compiles = 3
max_compile_seconds = 100
[functions."train.py:loss"]
max_compiles = 1
[functions."st.p"]
max_traces = 1
"""


def file(tmp_path, text):
    path = tmp_path / ("pyproject.toml" if text.startswith("[tool") else "budgets.toml")
    path.write_text(text)
    return path


def check(profile, path):
    return [line for line in checked(profile, path).lines() if line.startswith(f"{path}: ")]


def program(losses=1, steps=1, others=1):
    made = Made()
    for _ in range(losses):
        made.build("loss", line=12, cause=Cause("static value", "steps", "1", "2"))
    for _ in range(steps):
        made.build("step", line=20)
    for _ in range(others):
        made.build("other", line=30)
    return made


TOTAL = "[total]\nmax_compiles = 4"
EXACT = '[functions.".*"]\nmax_builds = 9\n[functions.loss]\nmax_builds = 1'
IN_PROJECT = "[tool.harness.budget.default]\nmax_compiles = 1"


@pytest.mark.parametrize(
    ("text", "counts", "said"),
    [
        (GOOD, {}, ""),
        (
            GOOD,
            {"losses": 2},
            '2 compiles of `loss` (train.py:12), and [functions."train.py:loss"]',
        ),
        (GOOD, {"steps": 2}, '2 traces of `step` (train.py:20), and [functions."st.p"] allows 1'),
        (GOOD, {"others": 4}, "4 compiles of `other` (train.py:30), and [default] allows 3"),
        (TOTAL, {"losses": 2}, ""),
        (TOTAL, {"losses": 2, "steps": 2}, "5 compiles, and [total] allows 4"),
        (EXACT, {"losses": 2}, '2 builds of `loss` (train.py:12), and [functions."loss"] allows 1'),
        (IN_PROJECT, {"steps": 2}, "2 compiles of `step` (train.py:20), and [default] allows 1"),
    ],
)
def test_each_table_has_its_functions_and_an_exact_name_goes_before(tmp_path, text, counts, said):
    path = file(tmp_path, text)
    messages = check(program(**counts).profile(), path)
    assert [message.startswith(f"{path}: {said}") for message in messages] == [True] * bool(said)


def test_a_table_without_a_function_is_reported_and_no_error(tmp_path):
    path = file(tmp_path, '[functions."train.py:los"]\nmax_builds = 1')
    found = checked(program().profile(), path)
    assert found.over == []
    assert found.stale == (
        '[functions."train.py:los"] means no function that was built. '
        "Did you mean 'train.py:loss'?",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.harness.thresholds]\ncompile = 0.1", "has no [tool.harness.budget.total]"),
        ("[tool]\nharness = 3", "harness is 3; expected a table"),
        ("[tool.harness.budgets]\nx = 1", "has 'budgets', which is not known. Did you mean 'bud"),
        ("x = [", "is not TOML"),
        ("", "limits nothing"),
        ("[default]", "limits nothing"),
        ("max_compiles = 3", "max_compiles stands outside any table. Put it under [total]"),
        ("[defaults]\nmax_compiles = 3", "'defaults' is not known; expected total, default, fun"),
        ("total = 3", "total is 3; expected a table [total]"),
        ("[default]\nmax_compile = 3", "[default]: 'max_compile' is not known; expected"),
        ("[default]\nmax_eager = 3", "max_eager limits the whole program, not one function"),
        ("[default]\nmax_compiles = true", "[default]: max_compiles is True; expected a whole"),
        ("[total]\nmax_compile_seconds = inf", "[total]: max_compile_seconds is inf; expected a "),
        ("[functions]\nloss = 1", '[functions."loss"] is 1; expected a table of limits'),
        ('[functions."("]\nmax_compiles = 1', "'(' is no regular expression"),
        ('[functions.""]\nmax_compiles = 1', "functions has ''; expected a name"),
    ],
)
def test_what_is_not_understood_is_one_clear_error(tmp_path, text, said):
    path = file(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match=r"There is no budget file .*--write"):
        read(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not TOML"):
        read(tmp_path / "binary.toml")


@pytest.mark.parametrize("place", ['a "b".py', "c++/(x.py", "a\\b.py", "ünï.py", "a\x7fb.py"])
def test_what_is_written_is_just_kept_to(tmp_path, place):
    made = program(3, 2, 1).build("<lambda>", file=place, qualname="f.<locals>.<lambda>")
    made.build("add", origin="jax", file="/x/site-packages/jax/_src/a.py")
    path = tmp_path / "new" / "budgets.toml"
    assert write(made.profile(), path) == 4
    assert check(made.profile(), path) == []
    found = checked(made.profile(), path)
    assert found.stale == ()
    assert all(use.used == use.allowed for use in found.uses)
    for worse in ("loss", "step"):
        more = program(3, 2, 1).build(worse, line={"loss": 12, "step": 20}[worse])
        assert len(check(more.profile(), path)) == 2  # compiles and traces


def test_a_file_that_is_there_is_not_replaced_by_accident(tmp_path):
    path = file(tmp_path, GOOD)
    with pytest.raises(UsageError, match="is there already"):
        write(program().profile(), path)
    write(program().profile(), path, force=True)
    assert "max_compiles = 3\n" in path.read_text()
    with pytest.raises(UsageError, match="is not written to"):
        write(program().profile(), tmp_path / "pyproject.toml", force=True)
    with pytest.raises(StoreError, match="cannot be written"):
        write(program().profile(), path / "below.toml")


def run(*arguments):
    return CliRunner().invoke(app, ["profile", "check", *map(str, arguments)])


def test_the_command_exits_with_1_over_the_budget_and_0_within(tmp_path):
    good = program().write(tmp_path / "good")
    bad = program(losses=4).write(tmp_path / "bad")
    path = file(tmp_path, GOOD)
    result = run(good, "--budget", path)
    assert result.exit_code == 0, result.output
    assert "Within the budget: 6 limits." in result.output
    result = run(bad, "--budget", path)
    assert result.exit_code == 1
    assert "4 compiles of `loss` (train.py:12)" in result.output
    assert "Over the budget: 1 of 6 limits." in result.output
    cut = program()
    cut.ended = False
    result = run(cut.write(tmp_path / "cut"), "--budget", path)
    assert (result.exit_code, "1 log cut off" in result.output) == (0, True)
    assert run(good, "--write", path, "--force").exit_code == 0
    assert [run(one, "--budget", path).exit_code for one in (good, bad)] == [0, 1]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("seen", 2),
        ("seen --budget budgets.toml --write budgets.toml", 2),
        ("seen --budget budgets.toml --force", 2),
        ("none --budget budgets.toml", 2),
    ],
)
def test_the_command_refuses_what_makes_no_sense(tmp_path, monkeypatch, words, code):
    monkeypatch.chdir(tmp_path)
    program().write(tmp_path / "seen")
    file(tmp_path, GOOD)
    result = run(*words.split())
    assert isinstance(result.exception, HarnessError), result.output
    assert result.exception.exit_code == code
