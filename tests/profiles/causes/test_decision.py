"""Causes that lines tell; where they tell none, none is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.jaxhooks import events
from harness.output.report.profile.face import Profile
from harness.profiles.causes import decide as deciding
from harness.profiles.causes.decide import decide
from tests.profiles.made import Made


def build(made, function, shape="4", stages="TLC", object_=None):
    """Add a build of a function of one array, and return its number."""
    names = [stage for stage in ("trace", "lower", "compile") if stage[0].upper() in stages]
    return made.build(f"f{function}", shape=shape, stages=names, ms=1, object_=object_).number


@pytest.fixture
def made():
    return Made()


def cause(made, number):
    return decide(made.profile().builds)["made", number]


def test_the_same_build_again_is_unexplained(made):
    first = build(made, 1)
    found = cause(made, build(made, 1))
    assert (found.kind, found.nearest) == ("unexplained", first)
    assert cause(made, first).nearest == 0, "there was none before"


def test_only_clearing_after_the_latest_of_equal_builds_explains_one(made):
    build(made, 1)
    made.clear()
    assert cause(made, build(made, 1)).kind == "cache cleared"
    assert cause(made, build(made, 1)).kind == "unexplained"


def test_what_could_not_have_caused_the_stages_is_not_named(made):
    build(made, 1)
    build(made, 1, shape="5")
    # Another shape is traced anew; this was only compiled.
    found = cause(made, build(made, 1, shape="6", stages="C"))
    assert (found.kind, found.nearest) == ("unexplained", 0)


def test_only_a_cache_that_was_full_is_said_to_have_evicted(made):
    build(made, 1)
    for function in range(2, 2049):
        build(made, function)
    again = build(made, 1, stages="LC")
    assert cause(made, again).kind == "unexplained"
    build(made, 3, shape="9")
    found = cause(made, build(made, 2, stages="LC"))
    assert (found.kind, found.after) == ("evicted", "2048")


def test_two_threads_at_once(made):
    build(made, 1)
    again = build(made, 1)
    line = made.lines[-1]
    made.lines[-1] = replace(line, thread=2, begin_ns=line.begin_ns - 1)
    assert cause(made, again).kind == "concurrent"


def test_the_nearest_build_is_found_behind_many(made):
    build(made, 1, shape="2,3")
    for n in range(100):
        build(made, 1, shape="7", object_=2 + n)
    found = cause(made, build(made, 1, shape="2,4"))
    assert found[:4] == ("shape", "x", "(2, 3)", "(2, 4)")
    assert found.sizes == ((2, 3), (2, 4))


def test_processes_know_nothing_of_each_other(made):
    number = build(made, 1)
    (process,) = made.profile().processes
    found = decide(Profile((process, replace(process, file="b"))).builds)
    assert found["b", number].kind == "first"


def test_lines_that_were_lost_do_not_stop_it(made):
    build(made, 1)
    number = build(made, 1, shape="5")
    made.lines = [line for line in made.lines if isinstance(line, events.Build)]
    assert cause(made, number).kind in ("first", "unexplained")


@pytest.mark.parametrize("compares", ["differences", "least_weight"])
def test_not_all_pairs_of_builds_are_compared(monkeypatch, made, compares):
    compared = []
    original = getattr(deciding, compares)
    monkeypatch.setattr(deciding, compares, lambda *two: compared.append(0) or original(*two))
    for n in range(1_000):
        build(made, n % 7, shape=str(n), object_=1 + n % 3)
    found = decide(made.profile().builds)
    assert {one.kind for one in found.values()} == {"first", "shape", "new function object"}
    assert len(compared) < 10_000, "of 70,000 pairs"
