"""Causes that lines tell; where they tell none, none is named."""

from __future__ import annotations

import time

from harness.profiles.decision.decide import decide
from harness.report.profile.face import Profile
from tests.profiles.causes.lines import STEP_NS, Program


def cause(program: Program, build):
    return decide(program.profile().builds)["memory", build]


def test_the_same_build_again_is_unexplained():
    program = Program()
    first = program.build(1)
    found = cause(program, program.build(1))
    assert (found.kind, found.nearest) == ("unexplained", first)
    assert cause(program, first).nearest == 0, "there was none before"
    assert "nothing that is recorded accounts for it" in found.sentence


def test_the_same_build_after_clearing_is_explained():
    program = Program()
    program.build(1)
    program.clear()
    assert cause(program, program.build(1)).kind == "cache cleared"


def test_clearing_before_the_latest_of_equal_builds_explains_nothing():
    program = Program()
    program.build(1)
    program.clear()
    program.build(1)
    assert cause(program, program.build(1)).kind == "unexplained"


def test_what_could_not_have_caused_the_stages_is_not_named():
    program = Program()
    program.build(1)
    program.build(1, shape="5")
    # Another shape is traced anew; this was only compiled.
    found = cause(program, program.build(1, shape="6", stages="C"))
    assert (found.kind, found.nearest) == ("unexplained", 0)


def test_only_a_cache_that_was_full_is_said_to_have_evicted():
    program = Program()
    program.build(1)
    for function in range(2, 2049):
        program.build(function)
    again = program.build(1, stages="LC")
    assert cause(program, again).kind == "unexplained"
    program.build(3, shape="9")
    late = program.build(2, stages="LC")
    found = cause(program, late)
    assert found.kind == "evicted"
    assert "JAX keeps 2,048" in found.sentence


def test_two_threads_at_once():
    program = Program()
    program.build(1)
    begin = program.now_ns + STEP_NS // 2
    again = program.build(1, thread=2, begin_ns=begin, end_ns=begin + STEP_NS)
    assert cause(program, again).kind == "concurrent"


def test_the_nearest_build_is_found_behind_many():
    program = Program()
    program.build(1, shape="2,3")
    for n in range(100):
        program.build(1, shape="7", object_=2 + n)
    found = cause(program, program.build(1, shape="2,4"))
    assert (found.kind, found.argument, found.before, found.after) == (
        "shape",
        "x",
        "(2, 3)",
        "(2, 4)",
    )
    assert "(axis 1)" in found.sentence


def test_processes_know_nothing_of_each_other():
    one, other = Program(), Program()
    one.build(1)
    number = other.build(1)
    found = decide(Profile((one.process("a"), other.process("b"))).builds)
    assert found["b", number].kind == "first"


def test_lines_that_were_lost_do_not_stop_it():
    program = Program()
    program.build(1)
    number = program.build(1, shape="5")
    program.lines = [line for line in program.lines if type(line).__name__ == "Build"]
    assert cause(program, number).kind in ("first", "unexplained")


def test_many_builds_take_seconds():
    program = Program()
    for n in range(5_000):
        program.build(n % 7, shape=str(n), object_=n % 3)
    begin = time.process_time()
    found = decide(program.profile().builds)
    assert len(found) == 5_000
    assert {one.kind for one in found.values()} == {"first", "shape", "new function object"}
    assert time.process_time() - begin < 6  # comparing all pairs takes minutes
