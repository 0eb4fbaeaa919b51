"""What is said before and after a program was run, and the exit code that it makes."""

from __future__ import annotations

import io

import pytest
from click.testing import CliRunner
from rich.console import Console

from harness.cli.profile import answer, app
from harness.errors import UsageError
from harness.jaxhooks.programs import Ran
from harness.output.profile import summary
from harness.output.report import files
from harness.profiles.causes.cause import Cause
from harness.profiles.recorded import read
from tests.profiles.made import Made


def built(folder, times):
    made = Made()
    for _ in range(times):
        made.build("loss", cause=Cause("static value", "steps", "1", "2"))
    return made.write(folder)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--max-compiles", "-1"), "'--max-compiles': -1 is not in the range x>=0"),
        (("--max-compiles", "1.5"), "'--max-compiles': '1.5' is not a valid number"),
        (("--max-seconds", "nan"), "'--max-seconds': 'nan' is not a valid number"),
        (("--announce", "-0.1"), "'--announce': -0.1 is not in the range x>=0"),
        (("--announce", "1", "--sample", "0"), "--announce 1 needs samples"),
        (("--report", "r.pdf"), "r.pdf has none of the suffixes .html (a report), .json and .json"),
    ],
)
def test_a_bad_value_is_refused_before_the_program_runs(tmp_path, monkeypatch, options, text):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*options, "--", "-c", "open('ran', 'w')"])
    error = str(done.exception) if isinstance(done.exception, UsageError) else done.output
    assert done.exit_code == 2 or isinstance(done.exception, UsageError)
    assert text in error
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_made_is_refused_before_the_program_runs(tmp_path, monkeypatch):
    def check():
        raise UsageError("The report needs altair")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "check_report", check)
    done = CliRunner().invoke(app, ["--report", "r.html", "--", "-c", "open('ran', 'w')"])
    assert isinstance(done.exception, UsageError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("limits", "code", "expected", "text"),
    [
        ((3, 0.09), 0, 0, "3 compiled or loaded, within --max-compiles 3; "),
        ((2, None), 0, 1, "3 compiled or loaded, over --max-compiles 2."),
        ((0, None), 0, 1, "3 compiled or loaded, over --max-compiles 0."),
        ((None, 0.0899), 0, 1, "0.09 s of building, over --max-seconds 0.0899."),
        ((3, 0), 0, 1, "within --max-compiles 3; 0.09 s of building, over --max-seconds 0."),
        ((3, None), 5, 5, "3 compiled or loaded, within --max-compiles 3."),
        ((2, None), 5, 5, "3 compiled or loaded, over --max-compiles 2."),
        ((2, None), 143, 143, "3 compiled or loaded, over --max-compiles 2."),
    ],
)
def test_the_last_line_has_the_programs_end_and_the_limits(
    tmp_path, capfd, limits, code, expected, text
):
    folder = built(tmp_path / "p", 3)  # 30 ms each
    assert answer.tell(Ran(folder, code, 1, True), *limits, None) == expected
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith(f"harness: exit code {expected}: the program ended with {code}; ")
    assert text in last


def test_findings_with_a_muted_remedy_are_counted_in_one_line(tmp_path, monkeypatch, command):
    folder = tmp_path / "p"
    monkeypatch.chdir(tmp_path)
    made = Made()
    for shape in ("2", "3", "4"):
        made.build("loss", shape=shape)
    made.write(folder)
    _, whole, _ = command("profile", "show", "p")
    assert "(JH050)" in whole
    assert "Muted" not in whole
    _, text, _ = command("profile", "show", "p", "--mute", "JH050")
    assert "Pad `x`" not in text
    assert "Muted: 1 finding (JH050), 60 ms." in text
    (tmp_path / "pyproject.toml").write_text('[tool.harness.profile]\nmute = ["JH050"]\n')
    assert command("profile", "show", "p")[1] == text
    code, _, error = command("profile", "show", "p", "--mute", "JH999")
    assert (code, "'JH999' is no remedy" in error) == (2, True)
    (tmp_path / "pyproject.toml").write_text('[tool.harness.profile]\nmute = "JH050"\n')
    code, _, error = command("profile", "show", "p")
    assert (code, "expected a list" in error) == (2, True)


def test_limits_without_a_profile_are_not_kept(tmp_path, capfd):
    nothing = Ran(tmp_path, 0, 0, True)
    assert answer.tell(nothing, 3, 1.0, None) == 4
    assert capfd.readouterr().err.splitlines()[-1] == (
        "harness: exit code 4: the program ended with 0; --max-compiles and --max-seconds cannot "
        "be checked without a profile."
    )
    assert answer.tell(nothing, None, None, tmp_path / "r.html") == 4
    assert "r.html cannot be written without a profile" in capfd.readouterr().err
    assert answer.tell(Ran(tmp_path, 3, 0, True), 3, None, None) == 3
    assert answer.tell(nothing, None, None, None) == 4


def test_nothing_in_a_name_moves_the_cursor_or_becomes_a_picture(tmp_path, capfd):
    made = Made().build("a\x1b[2J:smile:", cause=Cause("first"))
    answer.tell(Ran(made.write(tmp_path / "p"), 0, 1, True), None, None, None)
    assert "a\\x1b[2J:smile:" in capfd.readouterr().err


def test_the_answer_fits_the_terminal_it_is_shown_on(tmp_path):
    made = Made()
    for number in range(40):
        for _ in range(2):
            made.build(f"a_long_name_of_a_function_{number}", line=number, called=number)
    profile = read(made.write(tmp_path / "p"))
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80, height=20)
    lines = answer.answer(profile, terminal, below=2)
    assert len(lines) <= 18
    assert all(len(line) <= 80 for line in lines if "harness profile" not in line)
    assert any("other finding" in line for line in lines)
    whole = answer.answer(profile)  # in a pipe, or a log of CI
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
