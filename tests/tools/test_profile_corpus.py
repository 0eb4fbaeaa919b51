"""A program is judged by the data of the first finding of its profile; the table is whole."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from harness.jaxhooks.events import Around, Function
from harness.profiles.causes.cause import Cause
from harness.profiles.finding import Finding
from tools.profile_corpus.__main__ import Program, judged, programs, verdict

TWICE = """
import sys
import jax, numpy as np
halve = jax.jit(lambda x, n: x / n, static_argnums=1)
for n in range(1, 33):
    halve(np.ones(3), n)
sys.exit(int(sys.argv[1]))
"""


def finding(seconds, name, kind="again", cause="static value", argument="n", **more):
    around = tuple(Around(*one) for one in more.pop("around", ()))
    function = Function(1, name, name, "/p/a.py", 1, "program", 0, around)
    return Finding(
        kind,
        seconds,
        (),
        cause=Cause(cause, argument),
        functions=(function,),
        sites=("sub/a.py:12",),
        **more,
    )


TOP = ({"kind": "again", "function": "f", "cause": "static value"}, {"function": "h"})
F, G = finding(0.9, "f"), finding(1.0, "g", "first", "first", "")


@pytest.mark.parametrize(
    ("top", "found", "expected"),
    [
        (TOP, [F], "right"),
        (TOP, [finding(1.0, "h", "first")], "right"),
        (TOP, [finding(1.0, "f", cause="shape")], "wrong"),
        (TOP, [G, F], "close"),
        (TOP, [replace(G, seconds=2.0), F], "wrong"),
        (TOP, [], "wrong"),
        (({"site": "a.py:1"},), [finding(1.0, "f", cause="unexplained")], "unexplained"),
        (({"site": "a.py:12"},), [F], "right"),
        (({"site": "a.py"},), [F], "right"),
        (({"argument": "m"},), [F], "wrong"),
        (({"argument": "m"},), [replace(F, others=(("m", 2),))], "right"),
        (
            ({"given": "body at a.py:9"},),
            [finding(1.0, "f", around=[("jit",), ("body", "/p/a.py", 9)])],
            "right",
        ),
        (
            ({"given": "body at a.py:9"},),
            [finding(1.0, "f", around=[("body", "/p/a.py", 19)])],
            "wrong",
        ),
        ((), [F], "wrong"),
        ((), [], "right"),
    ],
)
def test_what_is_expected_is_looked_for_in_the_first_findings(top, found, expected):
    assert verdict(found, Program("one", "a/a.py", top)) == expected


@pytest.mark.nightly
def test_a_program_runs_unchanged_and_one_that_fails_is_changed(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "twice.py").write_text(TWICE)
    (tmp_path / "own" / "click.py").write_text("raise SystemExit('not the one of the harness')")
    top = ({"cause": "static value", "argument": "n", "site": "twice.py:6"},)
    where = tmp_path, sys.executable
    fine = Program("fine", "own/twice.py 0", top)
    for _ in range(2):
        assert judged(fine, *where, tmp_path / "fine")[0] == "right"
        (tmp_path / "own" / "twice.py").write_text("raise SystemExit('it ran again')")
    (tmp_path / "own" / "twice.py").write_text(TWICE)
    for _ in range(2):
        fails = Program("fails", "own/twice.py 3", top)
        assert judged(fails, *where, tmp_path / "fails")[0] == "changed"
    with pytest.raises(SystemExit, match=r"there is no .*gone\.py; remove own"):
        judged(Program("gone", "own/gone.py", top), *where, tmp_path / "gone")


@pytest.mark.parametrize("name", ["test_it.py", "it_test.py"])
def test_modules_of_tests_run_under_pytest(tmp_path, name):
    (tmp_path / name).touch()
    assert "pytest" in Program(name, name, ()).words(tmp_path)[1]


def test_names_of_the_table_are_each_there_once():
    listed = programs([])
    assert len({program.name for program in listed}) == len(listed)
    with pytest.raises(SystemExit, match=r"no program 'nobody' in programs\.toml"):
        programs(["nobody"])
