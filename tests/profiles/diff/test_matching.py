from __future__ import annotations

from dataclasses import replace

import pytest

from harness.profiles.diff.compare import compare
from harness.profiles.functions import by_function
from harness.profiles.names import CELL, place_of
from tests.profiles.made import Made


def statuses(a, b):
    found = compare(a.profile(), b.profile())
    return {(c.function.key.qualname, c.function.key.line): c.status for c in found.changes}


def test_a_function_may_move_in_its_file():
    assert statuses(Made().build("loss", line=10), Made().build("loss", line=99)) == {
        ("loss", 99): "same"
    }


def test_a_function_counts_the_traces_inside_others_that_were_really_done():
    made = Made().build("outer", inner=["f", "g"])
    build = made.lines[-1]
    kept, again = build.inner
    made.lines[-1] = replace(build, inner=(kept, again._replace(times=0)))
    found = {
        counted.key.name: counted.counts["traces"] for counted in by_function(made.profile().builds)
    }
    assert found == {"outer": 1, "f": 1}


def test_a_renamed_function_is_new_and_gone():
    assert statuses(Made().build("loss"), Made().build("cost")) == {
        ("cost", 1): "new",
        ("loss", 1): "gone",
    }


def test_the_same_name_in_another_file_is_another_function():
    a, b = Made().build("f").profile(), Made().build("f", file="model.py").profile()
    found = {change.function.label: change.status for change in compare(a, b).changes}
    assert found == {"model.py:f": "new", "train.py:f": "gone"}


def test_lambdas_are_matched_in_order_where_all_moved():
    a = Made().build("<lambda>", line=10).build("<lambda>", line=20).build("<lambda>", line=20)
    b = Made().build("<lambda>", line=20).build("<lambda>", line=30).build("<lambda>", line=30)
    assert set(statuses(a, b).values()) == {"same"}


def test_lambdas_are_matched_by_the_nearest_line_where_one_came():
    a = Made().build("<lambda>", line=10).build("<lambda>", line=30)
    b = Made().build("<lambda>", line=10).build("<lambda>", line=20).build("<lambda>", line=31)
    assert statuses(a, b) == {
        ("<lambda>", 10): "same",
        ("<lambda>", 20): "new",
        ("<lambda>", 31): "same",
    }


def test_another_checkout_of_the_program_is_the_same_program():
    a = Made(cwd="/a/project").build("loss", file="pkg/model.py")
    b = Made(cwd="/b/project").build("loss", file="pkg/model.py")
    assert statuses(a, b) == {("loss", 1): "same"}


def test_two_processes_that_build_one_function_count_together():
    one, other = Made().build("f").profile(), Made().build("f").profile()
    found = by_function((*one.builds, *other.builds))
    assert [(counted.label, counted.requests) for counted in found] == [("train.py:f", 2)]


@pytest.mark.parametrize(
    ("file", "argv", "place"),
    [
        ("/w/a/train.py", ("a/train.py",), "train.py"),
        ("/w/pkg/model.py", ("a/train.py",), "pkg/model.py"),
        ("/w/a/train.py", ("/usr/bin/python3", "/w/a/train.py", "x.py"), "train.py"),
        ("/w/a/train.py", ("python", "-m", "a.train", "x.py"), "a/train.py"),
        ("/w/.venv/lib/python3.13/site-packages/optax/_src/x.py", (), "optax/_src/x.py"),
        ("/tmp/ipykernel_123/4567.py", (), CELL),
        ("<ipython-input-3-abc>", (), CELL),
        ("/elsewhere/x.py", (), "/elsewhere/x.py"),
        ("", (), ""),
    ],
)
def test_places_are_relative_to_the_program(file, argv, place):
    assert place_of(file, "/w", argv) == place


def test_a_deleted_working_directory_makes_no_place():
    assert place_of("/w/train.py", "", ()) == "/w/train.py"
