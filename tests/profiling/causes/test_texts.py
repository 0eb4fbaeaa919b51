"""Long texts are cut to where they differ; what libraries make is told apart from one's own."""

from __future__ import annotations

from harness.profiling import events
from harness.profiling.causes.deciding import decide
from harness.profiling.causes.kinds import Cause
from harness.profiling.causes.texts import (
    ANOTHER_OBJECT,
    another_object,
    around,
    library_of,
    short_functions,
    with_article,
)
from harness.profiling.causes.trees import tree_differences
from harness.profiling.log import Log
from harness.profiling.model import Process, Profile
from tests.profiling.causes.lines import started

PACKAGES = "/venv/lib/python3.12/site-packages/"


def test_long_texts_are_shown_from_before_their_first_difference() -> None:
    same = "GraphDef(nodes=[\n  NodeDef(type='M')], " + "x" * 300
    one, other = around(f"{same} rate=0.5 {same}", f"{same} rate=0.25 {same}")
    assert one != other
    assert one.startswith("…rate=0.5 ")
    assert other.startswith("…rate=0.25 ")
    assert "\n" not in one + other
    assert max(len(one), len(other)) < 125


def test_short_texts_are_shown_whole() -> None:
    assert around("{'a': *}", "{'b': *}") == ("{'a': *}", "{'b': *}")


def test_what_differs_by_its_address_only_is_another_object() -> None:
    text = "[(<bound method L.apply of L()>, <function chain.<locals>.init at 0x7f{}>, *)]"
    assert another_object(text.format(1), text.format(2)) == "chain.<locals>.init"
    assert another_object(text.format(1), text.format(1)) == ""
    assert another_object(text.format(1), text.format(2) + " ") == ""
    found = list(tree_differences("state: " + text.format(1), "state: " + text.format(2)))
    assert found == [("state", "chain.<locals>.init", ANOTHER_OBJECT)]


def test_texts_of_functions_articles_and_libraries() -> None:
    assert short_functions("<f.<locals>.<lambda> at /a b/c.py:7>") == "<lambda> (c.py:7)"
    assert short_functions("(<f at /a/c.py:7>, <g at /a/d.py:8>)") == "(f (c.py:7), g (d.py:8))"
    assert short_functions("<Thing at home>") == "<Thing at home>"
    assert [with_article(name) for name in ("int32", "uint32", "float32")] == [
        "an int32",
        "a uint32",
        "a float32",
    ]
    assert library_of(PACKAGES + "numpyro/util.py") == "numpyro"
    assert library_of("/home/user/train.py") == ""


def causes(
    function: events.Function, calls: list[tuple[int, events.Arguments, int]]
) -> list[Cause]:
    """Return the causes of builds, each of (line of the program, arguments, function object)."""
    lines: list[events.AnyLine] = [started(), function, events.Settings(1, {}, {})]
    for number, (line, arguments, object_) in enumerate(calls, 1):
        frames = (
            events.Frame("/home/user/fit.py", line, "main", "program"),
            events.Frame(PACKAGES + "solve/core.py", 9, "run", "library"),
        )
        spans = tuple(
            events.Span(stage, number * 10, number * 10 + 1, 1)
            for stage in ("trace", "lower", "compile")
        )
        lines += [
            events.Stack(number, frames),
            arguments,
            events.Build(
                number, "call", 1, object_, 1, number, 1, number * 10, number * 10 + 5, spans,
                arguments=arguments.id, settings=1,
            ),
        ]  # fmt: skip
    found = decide(Profile((Process(Log("memory", started(), tuple(lines))),)))
    return [found["memory", number] for number in range(1, len(calls) + 1)]


def library(through: str = "") -> events.Function:
    file = PACKAGES + "solve/core.py"
    return events.Function(1, "step", "make.<locals>.step", file, 3, "library", through)


def given(number: int, *statics: events.Static, tree: str = "x") -> events.Arguments:
    return events.Arguments(number, tree, (events.Leaf("x", "float32[4]"),), statics)


def test_what_a_library_makes_anew_is_told_by_the_line_of_the_program() -> None:
    _, found = causes(library(), [(5, given(1), 1), (5, given(1), 2)])
    assert found.kind == "new function object"
    assert "core.py:3 (solve)" in found.sentence
    assert found.remedy.startswith("solve makes it, used at fit.py:5: make the object")


def test_a_static_function_that_a_library_makes_anew() -> None:
    text = f"<run.<locals>.body at {PACKAGES}solve/core.py:88>"
    calls = [(5, given(n, events.Static("body", "function", text, object=n)), 1) for n in (1, 2)]
    _, found = causes(library(), calls)
    assert found.sentence == (
        "`body` is static, and is a function made anew each time: `body` at core.py:88 of solve."
    )
    assert "solve makes it, used at fit.py:5" in found.remedy


def test_a_static_function_that_the_program_makes_anew() -> None:
    text = "<main.<locals>.<lambda> at /home/user/fit.py:4>"
    calls = [(5, given(n, events.Static("term", "function", text, object=n)), 1) for n in (1, 2)]
    _, found = causes(library("equinox.filter_jit"), calls)
    assert "a function made anew each time: `<lambda>` at fit.py:4" in found.sentence
    assert found.remedy.startswith("Define the function once, outside the loop")


def test_another_use_of_a_library_is_told_without_a_remedy() -> None:
    rates = [events.Static("rate", "float", value) for value in ("1.0", "2.0")]
    calls = [(5, given(1, rates[0]), 1), (8, given(2, rates[1], tree="x: (*, *)"), 1)]
    _, found = causes(library(), calls)
    assert found.sentence.startswith("Another use of solve's `step`, at fit.py:8: ")
    assert found.sentence.endswith("from what it was given at fit.py:5.")
    assert found.remedy == ""
    _, same_line = causes(library(), [calls[0], (5, *calls[1][1:])])
    assert same_line.sentence.startswith("The structure of the arguments changed at `x`")


def test_numbers_that_equinox_takes_as_static() -> None:
    rates = [events.Static("rate", "float", value) for value in ("1.0", "2.0")]
    calls = [(5, given(n, rate), 1) for n, rate in enumerate(rates, 1)]
    _, found = causes(library("equinox.filter_jit"), calls)
    assert found.remedy.startswith("Make `rate` an array, e.g. `jnp.asarray(2.0)`")


def test_a_static_argument_that_becomes_an_array() -> None:
    array = events.Arguments(
        2, "x", (events.Leaf("x", "float32[4]"), events.Leaf("n", "int32[]")), ()
    )
    calls = [(5, given(1, events.Static("n", "int", "2")), 1), (5, array, 1)]
    _, found = causes(library("equinox.filter_jit"), calls)
    assert found.sentence == "`n` was the static 2, now it is an array."
    _, back = causes(library("equinox.filter_jit"), calls[::-1])
    assert back.sentence == "`n` was an array, now it is the static 2."
