"""A program is judged by what the first finding of its profile says; the table is whole."""

from __future__ import annotations

import sys

import pytest

from harness.output.profile_findings import FindingText
from harness.profiles.answer.findings import Finding
from harness.profiles.causes.cause import Cause
from tools.profile_corpus.__main__ import Program, judged, programs, verdict

TWICE = """
import sys
import jax, numpy as np
halve = jax.jit(lambda x, n: x / n, static_argnums=1)
for n in range(1, 33):
    halve(np.ones(3), n)
sys.exit(int(sys.argv[1]))
"""


ONE = "First build of `g`"
OTHER = (0.9, "`f` was compiled: `n` is static")
TOP = (("`f` was", "static"), ("`h`",))


@pytest.mark.parametrize(
    ("top", "found", "expected"),
    [
        (TOP, [OTHER], "right"),
        (TOP, [(1.0, "First build of `h`")], "right"),
        (TOP, [(1.0, "`f` was compiled: `n` had 3 shapes")], "wrong"),
        (TOP, [(1.0, ONE), OTHER], "close"),
        (TOP, [(2.0, ONE), OTHER], "wrong"),
        (TOP, [], "wrong"),
        (
            (("at a.py:2",),),
            [(1.0, "`f`: nothing that is recorded explains it")],
            "unexplained",
        ),
        ((("a.py:1",),), [(1.0, ONE)], "right"),
        ((), [OTHER], "wrong"),
        ((), [], "right"),
    ],
)
def test_what_is_expected_is_looked_for_in_the_first_findings(top, found, expected):
    cause = Cause("unexplained" if expected == "unexplained" else "first")
    texts = [
        FindingText(Finding("again", seconds, (), cause=cause), text, place="a.py:1")
        for seconds, text in found
    ]
    assert verdict(texts, Program("one", "a/a.py", top)) == expected


@pytest.mark.nightly
def test_a_program_runs_unchanged_and_one_that_fails_is_changed(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "twice.py").write_text(TWICE)
    (tmp_path / "own" / "click.py").write_text("raise SystemExit('not the one of the harness')")
    top = (("static", "twice.py:6"),)
    assert judged(Program("fine", "own/twice.py 0", top), tmp_path, sys.executable)[0] == "right"
    what, said = judged(Program("fails", "own/twice.py 3", top), tmp_path, sys.executable)
    assert f"{what}: {said}".startswith("changed: ended with 3")
    with pytest.raises(SystemExit, match=r"there is no .*gone\.py; remove own"):
        judged(Program("gone", "own/gone.py", top), tmp_path, sys.executable)


@pytest.mark.parametrize("name", ["test_it.py", "it_test.py"])
def test_modules_of_tests_run_under_pytest(tmp_path, name):
    (tmp_path / name).touch()
    assert "pytest" in Program(name, name, ()).words(tmp_path)[1]


def test_names_of_the_table_are_each_there_once():
    listed = programs([])
    assert len({program.name for program in listed}) == len(listed)
    with pytest.raises(SystemExit, match=r"no program 'nobody' in programs\.toml"):
        programs(["nobody"])
