"""Long texts are cut to where they differ; what libraries make is told apart from one's own."""

from __future__ import annotations

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harness
from harness.profiles.causes import dtype
from harness.profiles.causes.cause import Change
from harness.profiles.causes.pytree import tree_differences
from harness.profiles.causes.weak_type import with_article
from harness.profiles.causes.words import (
    ANOTHER_OBJECT,
    another_object,
    around,
    array_type,
    short_functions,
    static_text,
)
from harness.profiles.decision.decide import decide
from harness.profiles.model import Process
from harness.profiles.names import package_of
from harness.watch import events
from tests.profiles import logs
from tests.profiles.made import Made

PACKAGES = "/venv/lib/python3.12/site-packages/"


def test_long_texts_are_shown_from_before_their_first_difference():
    same = "GraphDef(nodes=[\n  NodeDef(type='M')], " + "x" * 300
    one, other = around(f"{same} rate=0.5 {same}", f"{same} rate=0.25 {same}")
    assert one != other
    assert one.startswith("…rate=0.5 ")
    assert other.startswith("…rate=0.25 ")
    assert "\n" not in one + other
    assert max(len(one), len(other)) < 125


def test_short_texts_are_shown_whole():
    assert around("{'a': *}", "{'b': *}") == ("{'a': *}", "{'b': *}")


def test_what_differs_by_its_address_only_is_another_object():
    text = "[(<bound method L.apply of L()>, <function chain.<locals>.init at 0x7f{}>, *)]"
    assert another_object(text.format(1), text.format(2)) == "chain.<locals>.init"
    assert another_object(text.format(1), text.format(1)) == ""
    assert another_object(text.format(1), text.format(2) + " ") == ""
    found = list(tree_differences("state: " + text.format(1), "state: " + text.format(2)))
    assert found == [Change("state", "chain.<locals>.init", ANOTHER_OBJECT)]


def test_a_fixed_field_of_a_class_is_told_from_the_structure():
    tree = "c: PyTreeDef((CustomNode(a.Config[({}, 'x[')], [*]), {{'w': {}}}))"
    [found] = tree_differences(tree.format(1, "*"), tree.format(2, "*"))
    assert found == Change("c", "(1, 'x[')", "(2, 'x[')", "Config")
    [found] = tree_differences(tree.format(1, "*"), tree.format(2, "None"))
    assert found.type == ""
    tree = "c: CustomNode(Config[(None, rate={}, by=V(n=(1, 2)), seed={})], [*])"
    [found] = tree_differences(tree.format(0.1, 3), tree.format(0.2, 3))
    assert found == Change("c", "rate=0.1", "rate=0.2", "Config")
    [found] = tree_differences(tree.format(0.1, 3), tree.format(0.2, 4))
    assert found == Change("c", "rate=0.1, seed=3", "rate=0.2, seed=4", "Config")


def test_a_type_that_is_no_arrays_is_told_whole():
    leaves = [events.Leaf("x", aval) for aval in ("float32[3]", "Tok", "float32[3]")]
    said = [[*dtype.CAUSE.looks["types"](None, pair)] for pair in itertools.pairwise(leaves)]
    assert [(one.before, one.after) for (one,) in said] == [
        ("float32[3]", "Tok"),
        ("Tok", "float32[3]"),
    ]


def test_a_reference_to_an_array_has_the_type_of_one():
    add = jax.jit(lambda ref: ref[...] + 1)
    with harness.profile() as profile:
        for kind in ("float32", "int32"):
            add(jax.new_ref(jnp.ones(3, kind)))
    *_, last = [built for built in profile.builds if built.function.origin == "program"]
    assert profile.cause_of(last).remedy == "Make `ref` of arrays of one dtype."
    assert array_type("Ref{float32[3,4]}") == ("Ref{float32}", "", "(3, 4)")
    assert array_type("key<fry>[]") == ("key<fry>", "", "()")


def test_a_static_value_of_the_same_text_is_told_by_its_type_or_its_object():
    mine, yours = (events.Static("n", kind, "3", number) for kind, number in (("A", 1), ("B", 2)))
    assert static_text(mine) == "3"
    assert static_text(mine, yours) == "3 (A)"
    assert static_text(mine, events.Static("n", "A", "3", 2)) == "3 (object 1)"


def test_texts_of_functions_articles_and_libraries():
    assert short_functions("<f.<locals>.<lambda> at /a b/c.py:7>") == "<lambda> (c.py:7)"
    assert short_functions("(<f at /a/c.py:7>, <g at /a/d.py:8>)") == "(f (c.py:7), g (d.py:8))"
    assert short_functions("<Thing at home>") == "<Thing at home>"
    assert [with_article(name) for name in ("int32", "uint32", "float32")] == [
        "an int32",
        "a uint32",
        "a float32",
    ]
    assert package_of(PACKAGES + "numpyro/util.py") == "numpyro"
    assert package_of("/home/user/train.py") == ""


def causes(function, calls, *stages):
    """Return the causes of builds, each of (line of the program, arguments, function object)."""
    lines: list[events.AnyLine] = [logs.started(), function, events.Settings(1, {}, {})]
    for number, (line, arguments, object_) in enumerate(calls, 1):
        frames = (
            events.Frame("/home/user/fit.py", line, "main", "program"),
            events.Frame(PACKAGES + "solve/core.py", 9, "run", "library"),
        )
        at = 10 * number
        spans = ((stage, at, at + 1) for stage in stages or ("trace", "lower", "compile"))
        build = logs.build(number, at, at + 5, *spans, arguments=arguments.id, settings=1)
        lines += [
            *(events.Stack(number, frames), arguments),
            replace(build, object=object_, stack=number),
        ]
    found = decide(Process("memory", lines[0], tuple(lines)).builds)
    return [found["memory", number] for number in range(1, len(calls) + 1)]


def library(through=""):
    file = PACKAGES + "solve/core.py"
    return events.Function(1, "step", "make.<locals>.step", file, 3, "library", through)


def program():
    return events.Function(1, "step", "step", "/home/user/fit.py", 3, "program")


def given(number, *statics, tree="x"):
    return events.Arguments(number, tree, (events.Leaf("x", "float32[4]"),), statics)


def test_what_a_library_makes_anew_is_told_by_the_line_of_the_program():
    _, found = causes(library(), [(5, given(1), 1), (5, given(1), 2)])
    assert found.kind == "new function object"
    assert "core.py:3 (solve)" in found.sentence
    assert found.remedy.startswith("solve makes it, used at fit.py:5: make the object")


def test_another_use_of_a_library_is_told_without_a_remedy():
    rates = [events.Static("rate", "float", value) for value in ("1.0", "2.0")]
    calls = [(5, given(1, rates[0]), 1), (8, given(2, rates[1], tree="x: (*, *)"), 1)]
    _, found = causes(library(), calls)
    assert found.sentence.startswith("Another use of solve's `step`, at fit.py:8: ")
    assert found.sentence.endswith("from what it was given at fit.py:5.")
    assert found.remedy == ""
    _, same_line = causes(library(), [calls[0], (5, *calls[1][1:])])
    assert same_line.sentence.startswith("The structure of the arguments changed at `x`")


def test_a_static_argument_that_becomes_an_array():
    array = events.Arguments(
        2, "x", (events.Leaf("x", "float32[4]"), events.Leaf("n", "int32[]")), ()
    )
    calls = [(5, given(1, events.Static("n", "int", "2")), 1), (5, array, 1)]
    _, found = causes(library("equinox.filter_jit"), calls)
    assert found.sentence == "`n` was the static 2, now it is an array."
    _, back = causes(library("equinox.filter_jit"), calls[::-1])
    assert back.sentence == "`n` was an array, now it is the static 2."


def of_static(kind, *values, function=None):
    """Return the cause of the second build, for each value an object of its own."""
    statics = [events.Static("n", kind, text, object=n) for n, text in enumerate(values, 1)]
    calls = [(5, given(n, static), 1) for n, static in enumerate(statics, 1)]
    return causes(function or program(), calls)[1]


BODY = f"<run.<locals>.body at {PACKAGES}solve/core.py:88>"
LAMBDA = "<main.<locals>.<lambda> at /home/user/fit.py:4>"
FILTERED = library("equinox.filter_jit")


@pytest.mark.parametrize(
    ("function", "kind", "values", "sentence", "remedy"),
    [
        (library(), "function", (BODY, BODY), "`body` at core.py:88 of solve.", "solve makes it, "),
        (FILTERED, "function", (LAMBDA, LAMBDA), "`<lambda>` at fit.py:4.", "Define the function "),
        (FILTERED, "float", ("1.0", "2.0"), "", "Make `n` an array, e.g. `jnp.asarray(2.0)`"),
        (program(), "int", ("2", "3"), "", "If `n` sizes no array, make it a dynamic argument"),
        (program(), "numpy.int64", ("np.int64(2)", "np.int64(3)"), "", "If `n` sizes no array"),
        (program(), "float", ("0.5", "0.25"), "", "Make `n` a dynamic argument, or let it take "),
        (program(), "bool", ("True", "False"), "", "Make `n` a dynamic argument (with jnp.where"),
        (program(), "str", ("'train'", "'eval'"), "", "Let `n` take few values."),
        (program(), "type", ("<class 'a'>", "<class 'b'>"), "", "Let `n` take few values."),
        (program(), "C", ("<C>", "<C>"), "<C> (object 2): every value", "Pass the same object as "),
    ],
)
def test_a_static_value_has_a_remedy_that_can_stand_for_it(
    function, kind, values, sentence, remedy
):
    found = of_static(kind, *values, function=function)
    assert sentence in found.sentence
    assert (kind == "function") == ("a function made anew each time: " in found.sentence)
    assert found.remedy.startswith(remedy)


def test_a_value_whose_end_is_not_recorded_is_not_taken_for_another_object():
    for kind, text in (("tuple", "(0, 1, ...)"), ("main.Config", "Config(" + "x" * 193)):
        found = of_static(kind, text, text)
        assert found.after.endswith(" (the rest differs)")
        assert len(found.after) < 90
        assert found.remedy == "Let `n` take few values."


def test_what_is_traced_of_jaxs_in_a_function_needs_no_remedy():
    text = "/venv/lib/python3.12/site-packages/jax/_src/numpy/ufuncs.py"
    add = events.Function(1, "add", "add", text, 1208, "jax")
    leaves = [(events.Leaf("x", f"float32[{n}]"),) for n in (1, 2)]
    calls = [(5, events.Arguments(n, "x", leaf, ()), 1) for n, leaf in enumerate(leaves, 1)]
    _, found = causes(add, calls, "trace")
    assert (found.kind, found.remedy) == ("shape", "")


def test_what_jax_runs_while_another_is_traced_is_not_called_transformed():
    def outer(x):
        with jax.ensure_compile_time_eval():
            scale = jnp.arange(3).sum() + 1
        return x * scale

    def found(run):
        with harness.profile() as profile:
            run()
        return [
            f"{cause.sentence} {cause.remedy}"
            for built in profile.builds
            if built.function.origin == "jax" and (cause := profile.cause_of(built))
        ]

    jax.clear_caches()
    assert not any("batched" in text for text in found(lambda: jax.jit(outer)(np.ones(5))))
    jax.clear_caches()
    assert any(
        "batched" in text for text in found(lambda: jax.vmap(jnp.matmul)(*[np.ones((2, 3, 3))] * 2))
    )


def test_a_mesh_is_told_of_once():
    made = Made()
    for axes in ("i=2", "i=4"):
        context = {"abstract_mesh_context_manager": axes, "mesh": axes}
        made.build("step", stages=("trace",), context=context)
    cause = decide(made.profile().builds)["made", 2]
    assert cause.sentence == "`mesh` of JAX's configuration or context was i=2, now i=4."


def test_a_remedy_names_what_else_has_the_function_built_again():
    jitted = jax.jit(lambda n, x, y: x * n, static_argnums=0)
    one, two = np.ones(3), np.ones(4)
    with harness.profile() as profile:
        for given in ((1, one, 0), (1, two, 0), (2, one, 0), (3, two, (0, 0))):
            jitted(*given)
    built = [built for built in profile.builds if built.function.origin == "program"]
    _, shape, static, both = [profile.cause_of(one).remedy for one in built]
    assert "mend" not in shape + static
    assert both.endswith(" differs too (static value): mend both.")
