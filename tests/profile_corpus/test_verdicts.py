"""A program is judged by what the first finding of its profile says; the table is whole."""

from __future__ import annotations

import sys

import pytest

from harness.profiles.answer.findings import Finding
from tests.profile_corpus.__main__ import Program, judged, programs, verdict

TWICE = """
import sys
import jax, numpy as np
halve = jax.jit(lambda x, n: x / n, static_argnums=1)
for n in range(1, 33):
    halve(np.ones(3), n)
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("top", "said", "expected"),
    [
        ((("`f` was", "static"), ("`g`",)), "`f` was compiled: `n` is static", "right"),
        ((("`f` was", "static"), ("`g`",)), "First build of `g`", "right"),
        ((("`f` was", "static"),), "`f` was compiled: `n` had 3 shapes", "wrong"),
        ((("at a.py:2",),), "`f`: nothing that is recorded accounts for it", "unexplained"),
        ((), "`f` was compiled", "wrong"),
    ],
)
def test_what_is_expected_is_looked_for_in_the_first_finding(top, said, expected):
    finding = Finding(1.0, said, place="a.py:1")
    assert verdict([finding], Program("one", "a/a.py", top)) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0.9, "close"), (0.5, "wrong")])
def test_what_takes_almost_as_long_may_come_later(seconds, expected):
    found = [Finding(1.0, "First build of `g`"), Finding(seconds, "`f` was compiled 2 times more")]
    assert verdict(found, Program("one", "a/a.py", (("`f` was",),))) == expected


def test_nothing_said_is_right_only_where_nothing_is_expected():
    assert verdict([], Program("one", "a/a.py", ())) == "right"
    assert verdict([], Program("one", "a/a.py", (("`f`",),))) == "wrong"


@pytest.mark.nightly
def test_a_program_runs_unchanged_and_one_that_fails_is_changed(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "twice.py").write_text(TWICE)
    (tmp_path / "own" / "click.py").write_text("raise SystemExit('not the one of the harness')")
    top = (("static", "twice.py:6"),)
    assert judged(Program("fine", "own/twice.py 0", top), tmp_path, sys.executable)[0] == "right"
    what, said = judged(Program("fails", "own/twice.py 3", top), tmp_path, sys.executable)
    assert (what, said.startswith("ended with 3")) == ("changed", True)
    with pytest.raises(SystemExit, match=r"there is no .*gone\.py; remove own"):
        judged(Program("gone", "own/gone.py", top), tmp_path, sys.executable)


def test_modules_of_tests_run_under_pytest(tmp_path):
    (tmp_path / "own").mkdir()
    for name in ("test_it.py", "it_test.py"):
        (tmp_path / "own" / name).touch()
        assert "pytest" in Program(name, f"own/{name}", ()).words(tmp_path)[1]


def test_names_of_the_table_are_each_there_once():
    listed = programs([])
    assert len({program.name for program in listed}) == len(listed)
    with pytest.raises(SystemExit, match=r"no program 'nobody' in programs\.toml"):
        programs(["nobody"])
