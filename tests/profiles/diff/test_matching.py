from __future__ import annotations

from dataclasses import replace

import pytest

from harness.profiles.compare import compare
from harness.profiles.functions import by_function
from harness.profiles.names import CELL, place_of
from tests.profiles.made import Made


def made(given):
    """Lambdas of these lines, or a function of these fields."""
    if isinstance(given, dict):
        fields = {"cwd": "/p", "name": "f", **given}
        return Made(cwd=fields.pop("cwd")).build(**fields)
    several = Made()
    for line in given:
        several.build("<lambda>", line=line)
    return several


@pytest.mark.parametrize(
    ("a", "b", "statuses"),
    [
        ({"line": 10}, {"line": 99}, {"train.py:f:99": "same"}),
        ({}, {"name": "g"}, {"train.py:g:1": "new", "train.py:f:1": "gone"}),
        ({}, {"file": "model.py"}, {"model.py:f:1": "new", "train.py:f:1": "gone"}),
        ({"cwd": "/a"}, {"cwd": "/b"}, {"train.py:f:1": "same"}),
        ((10, 20, 20), (20, 30, 30), {f"train.py:<lambda>:{n}": "same" for n in (20, 30)}),
        (
            (10, 30),
            (10, 20, 31),
            {
                "train.py:<lambda>:10": "same",
                "train.py:<lambda>:20": "new",
                "train.py:<lambda>:31": "same",
            },
        ),
    ],
    ids=[
        "a function may move in its file",
        "a renamed function is new and gone",
        "the same name in another file is another function",
        "another checkout of the program is the same program",
        "lambdas are matched in order where all moved",
        "lambdas are matched by the nearest line where one came",
    ],
)
def test_functions_are_matched(a, b, statuses):
    changes = compare(made(a).profile(), made(b).profile()).changes
    assert {f"{c.function.label}:{c.function.key.line}": c.status for c in changes} == statuses


def test_a_function_counts_the_traces_inside_others_that_were_really_done():
    made = Made().build("outer", inner=["f", "g"])
    build = made.lines[-1]
    kept, again = build.inner
    made.lines[-1] = replace(build, inner=(kept, again._replace(times=0)))
    found = {
        counted.key.name: counted.counts["traces"] for counted in by_function(made.profile().builds)
    }
    assert found == {"outer": 1, "f": 1}


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
    assert place_of("/w/train.py", "", ()) == "/w/train.py"  # the folder is deleted
