"""Long texts are cut to where they differ; what libraries make is told apart from one's own."""

from __future__ import annotations

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harness
from harness.profiles.answer.findings import findings
from harness.profiles.decision.decide import decide
from harness.profiles.model import Process
from harness.watch import events
from tests.profiles import logs
from tests.profiles.made import Made

PACKAGES = "/venv/lib/python3.12/site-packages/"


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


PROGRAM = events.Function(1, "step", "step", "/home/user/fit.py", 3, "program")
LOOP = events.Function(1, "scan", "scan", PACKAGES + "jax/_src/lax/loops.py", 3, "jax")

X = events.Leaf("x", "float32[4]")


def given(number, *statics, tree="x", leaf=X):
    return events.Arguments(number, tree, (leaf,), statics)


def second(*arguments, function=PROGRAM):
    """Return the cause of the second of two builds."""
    return causes(function, [(5, one, 1) for one in arguments])[1]


NODE = "c: PyTreeDef((CustomNode(a.Config[({}, 'x[')], [*]), {{'w': {}}}))"
FIELDS = "c: CustomNode(Config[(None, rate={}, by=V(n=(1, 2)), seed={})], [*])"
STATE = "c: CustomNode(State[(Opt(init=<function chain.<locals>.init at 0x7f{}>), {})], [*])"
BOUND = "c: [(<bound method L.apply of L()>, <function chain.<locals>.init at 0x7f{}>, *){}]"
SAME = "GraphDef(nodes=[\n  NodeDef(type='M')], " + "x" * 300


@pytest.mark.parametrize(
    ("tree", "before", "after", "told"),
    [
        (
            NODE,
            (1, "*"),
            (2, "*"),
            "Fixed fields of `Config` in `c` were (1, 'x['), now (2, 'x[').",
        ),
        (
            FIELDS,
            (0.1, 3),
            (0.2, 3),
            "Fixed fields of `Config` in `c` were rate=0.1, now rate=0.2.",
        ),
        (FIELDS, (1, 3), (2, 4), "in `c` were rate=1, seed=3, now rate=2, seed=4."),
        ("c: CustomNode(Own[{}], [*])", (5,), (6,), "of `Own` in `c` were 5, now 6."),
        (
            "c: CustomNode(Own[V(n={})], [*])",
            (5,),
            (6,),
            "of `Own` in `c` were V(n=5), now V(n=6).",
        ),
        (NODE, (1, "*"), (2, "None"), "(1, 'x['), now (2, 'x['); more of it differs too."),
        (NODE, (1, "*"), (1, "None"), "The structure of the arguments changed at `c`: (CustomNode"),
        (STATE, (1, 3), (2, 4), "of `State` in `c` were 3, now 4; more of it differs too."),
        (
            BOUND,
            (1, ""),
            (2, ""),
            "The structure of `c` holds `chain.<locals>.init`, whose text is",
        ),
        (BOUND, (1, ""), (2, ", *"), "<locals>.init>, *)] before, [(<bound method"),
        ("c: {}", ("{'a': *}",), ("{'b': *}",), "at `c`: {'a': *} before, {'b': *} now."),
    ],
)
def test_a_structure_is_told_by_what_differs(tree, before, after, told):
    first, then = (tree.format(*values) for values in (before, after))
    assert told in second(given(1, tree=first), given(2, tree=then)).sentence


def test_a_number_that_is_not_all_that_differs_has_no_remedy():
    trees = [NODE.format(*values) for values in ((1, "*"), (2, "*"), (3, "None"))]
    assert "one with data" in second(given(1, tree=trees[0]), given(2, tree=trees[1])).remedy
    assert second(given(1, tree=trees[0]), given(2, tree=trees[2])).remedy == ""


def test_a_field_that_sizes_the_arrays_beside_it_is_not_to_be_one_with_data():
    """As of the width of a layer of flax: a model of another width is another program."""
    trees = [NODE.format(width, "*") for width in (16, 32)]

    def causes_of(*sizes):
        leaves = [
            (events.Leaf("c[0].w", f"float32[{n}]"), events.Leaf("c2", "f32[]")) for n in sizes
        ]
        both = zip((1, 2), trees, leaves, strict=True)
        return second(*(events.Arguments(n, tree, some, ()) for n, tree, some in both))

    assert "one with data" in causes_of(16, 16).remedy
    assert causes_of(16, 32).remedy == ""


def test_an_argument_whose_name_begins_like_another_differs_too():
    x = [(events.Leaf("x", f"f32[{n}]"), events.Leaf("x_mask", f"bool[{n}, 2]")) for n in (1, 2)]
    found = second(*(events.Arguments(n, "x, x_mask", leaves, ()) for n, leaves in enumerate(x, 1)))
    assert found.remedy.endswith(" `x_mask` differs too (shape): mend both.")


def test_what_is_given_to_filter_jit_in_place_of_none_need_be_no_array():
    static = events.Static("c", "float", "2.0")
    found = second(given(1, tree="c: None"), given(2, static, tree="c"), function=FILTERED)
    assert found.sentence.startswith(
        "The structure of the arguments changed at `c`: None before, a"
    )
    assert "a value now. Also: pytree of `c`: not given → 2.0." in found.sentence


def test_another_class_is_told_and_cannot_be_mended():
    trees = (f"c: (CustomNode(lib.{name}.State[()], [*]), *)" for name in ("es", "ga"))
    found = second(*(given(number, tree=tree) for number, tree in enumerate(trees, 1)))
    assert found.sentence == "`c` holds an object of ga.State where it held one of es.State."
    assert found.remedy == ""
    trees = (f"c: CustomNode(lib.{name}.State[(n=1)], [*])" for name in ("es", "ga"))
    found = second(*(given(number, tree=tree) for number, tree in enumerate(trees, 1)))
    assert found.sentence == "`c` was of the class es.State, now of ga.State."
    assert found.remedy == ""


def test_a_class_that_is_made_anew_is_told():
    trees = (f"c: CustomNode(m.make.<locals>.Box{n}[1], [*])" for n in ("", "#2"))
    found = second(*(given(number, tree=tree) for number, tree in enumerate(trees, 1)))
    assert found.sentence == "`c` is of another class of the name make.Box than before."
    assert found.remedy == "Define make.Box once, outside the function or cell that makes it."


def test_long_texts_are_shown_from_before_their_first_difference():
    trees = [f"c: {SAME} rate={rate} {SAME}" for rate in (0.5, 0.25)]
    found = second(*(given(number, tree=tree) for number, tree in enumerate(trees, 1)))
    assert found.before.startswith("…rate=0.5 ")
    assert found.after.startswith("…rate=0.25 ")
    assert "\n" not in found.sentence
    assert max(len(found.before), len(found.after)) < 125


@pytest.mark.parametrize(
    ("before", "after", "kind", "texts"),
    [
        ("float32[3]", "Tok", "dtype", ("float32[3]", "Tok")),
        ("Tok", "float32[3]", "dtype", ("Tok", "float32[3]")),
        ("Ref{float32[3,4]}", "Ref{float32[3]}", "shape", ("(3, 4)", "(3,)")),
        ("key<fry>[]", "key<fry>[2]", "shape", ("()", "(2,)")),
        ("int32[]", "~int32[]", "weak type", ("an int32", "a weakly typed int32")),
        ("uint32[]", "~uint32[]", "weak type", ("a uint32", "a weakly typed uint32")),
    ],
)
def test_a_type_is_told_by_its_part_that_differs_or_whole(before, after, kind, texts):
    leaves = [
        events.Leaf("x", aval.lstrip("~"), weak=aval.startswith("~")) for aval in (before, after)
    ]
    found = second(*(given(number, leaf=leaf) for number, leaf in enumerate(leaves, 1)))
    assert (found.kind, (found.before, found.after)) == (kind, texts)


def test_a_weak_type_may_come_from_what_an_array_is_made_of():
    leaves = [events.Leaf("state.mu", "float32[]", weak=weak) for weak in (True, False)]
    found = second(*(given(number, leaf=leaf) for number, leaf in enumerate(leaves, 1)))
    assert found.remedy == (
        "Give `state.mu` an explicit dtype where it is made, or what it is made of: zeros_like and "
        "the like keep a weak type."
    )


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
    leaves = X, events.Leaf("n", "int32[]")
    both = given(1, events.Static("n", "int", "2")), events.Arguments(2, "x", leaves, ())
    assert second(*both, function=FILTERED).sentence == "`n` was the static 2, now it is an array."
    back = second(*both[::-1], function=FILTERED)
    assert back.sentence == "`n` was an array, now it is the static 2."


BODY = f"<run.<locals>.body at {PACKAGES}solve/core.py:88>"
LAMBDA = "<main.<locals>.<lambda> at /home/user/fit.py:4>"
FUNCTIONS = "(<f at /a/c.py:{}>, <<lambda>.<locals>.<lambda> at /a b/d.py:8>, <T at home>)"
FILTERED = library("equinox.filter_jit")
FEW = "Let `n` take few values."


@pytest.mark.parametrize(
    ("function", "kinds", "values", "sentence", "remedy"),
    [
        (library(), "function", (BODY, BODY), "`body` at core.py:88 of solve.", "solve makes it, "),
        (FILTERED, "function", (LAMBDA, LAMBDA), "`<lambda>` at fit.py:4.", "Define the function "),
        (FILTERED, "float", ("1.0", "2.0"), "", "Make `n` an array, e.g. `jnp.asarray(2.0)`"),
        (PROGRAM, "int", ("2", "3"), "", "If `n` sizes no array, make it a dynamic argument"),
        (PROGRAM, "numpy.int64", ("np.int64(2)", "np.int64(3)"), "", "If `n` sizes no array"),
        (PROGRAM, "float", ("0.5", "0.25"), "", "Make `n` a dynamic argument, or let it take "),
        (PROGRAM, "bool", ("True", "False"), "", "If only values depend on `n`, make it a dyn"),
        (library(), "bool", ("True", "False"), "", ""),
        (PROGRAM, "str", ("'train'", "'eval'"), "", ""),
        (PROGRAM, "tuple", ("('flat',)", "('deep', 2)"), "", ""),
        (PROGRAM, "NoneType", ("3", "None"), "", ""),
        (PROGRAM, "str", ("'step 9'", "'step 10'"), "", FEW),
        (PROGRAM, "type", ("<class 'a'>", "<class 'b'>"), "", ""),
        (PROGRAM, "m.C", ("<C>", "<C>"), "is another `C` each time.", "Pass the same object as "),
        (PROGRAM, "AB", ("<C>", "<C>"), "was <C> (A), now <C> (B): every value", ""),
        (
            PROGRAM,
            "tuple",
            (FUNCTIONS.format(7), FUNCTIONS.format(8)),
            "now (f (c.py:8), <lambda> (d.py:8), <T at home>): every value",
            FEW,
        ),
    ],
)
def test_a_static_value_has_a_remedy_that_can_stand_for_it(
    function, kinds, values, sentence, remedy
):
    kinds = kinds if kinds == "AB" else [kinds] * 2
    statics = (
        events.Static("n", kind, text, object=number)
        for number, (kind, text) in enumerate(zip(kinds, values, strict=True), 1)
    )
    both = (given(static.object, static) for static in statics)
    found = second(*both, function=function)
    assert sentence in found.sentence
    assert (kinds[0] == "function") == ("a function made anew each time: " in found.sentence)
    assert found.remedy.startswith(remedy)
    assert bool(found.remedy) == bool(remedy)


@pytest.mark.parametrize(
    ("kind", "value"), [("ClosedJaxpr", "..."), ("tuple", "({ lambda ; a:f32[]. let in (a,) },)")]
)
def test_what_jax_traced_for_its_own_loop_stands_for_a_new_function(kind, value):
    statics = (events.Static("jaxpr", kind, value, object=number) for number in (1, 2))
    both = (given(static.object, static) for static in statics)
    assert second(*both, function=LOOP).kind == "new function object"


def test_a_layout_of_what_jaxs_own_function_was_given_is_named():
    both = (given(n, leaf=replace(X, layout=text)) for n, text in enumerate(("", "{0,1}"), 1))
    _, found = causes(LOOP, [(5, one, 1) for one in both], "lower", "compile")
    assert "is built for each layout: `x` was the usual order, now {0,1}." in found.sentence
    both = (
        given(n, leaf=replace(X, sharding=f"SingleDeviceSharding() on cpu:{n}", committed=True))
        for n in (1, 2)
    )
    _, found = causes(LOOP, [(5, one, 1) for one in both], "lower", "compile")
    assert "is built for each device: `x` was " in found.sentence


@pytest.mark.parametrize(
    ("kind", "text"), [("tuple", "(0, 1, ...)"), ("main.Config", "Config(" + "x" * 193)]
)
def test_a_value_whose_end_is_not_recorded_is_not_taken_for_another_object(kind, text):
    found = second(*(given(n, events.Static("n", kind, text, object=n)) for n in (1, 2)))
    assert found.after.endswith(" (the rest differs)")
    assert len(found.after) < 90
    assert found.remedy == FEW


def test_what_is_traced_of_jaxs_in_a_function_needs_no_remedy():
    add = events.Function(1, "add", "add", PACKAGES + "jax/_src/numpy/ufuncs.py", 1208, "jax")
    calls = [(5, given(n, leaf=events.Leaf("x", f"float32[{n}]")), 1) for n in (1, 2)]
    _, found = causes(add, calls, "trace")
    assert (found.kind, found.remedy) == ("shape", "")


def test_what_jax_runs_while_another_is_traced_is_not_called_transformed():
    def outer(x):
        with jax.ensure_compile_time_eval():
            scale = jnp.arange(3).sum() + 1
        return x * scale

    def batched(function, *arguments):
        jax.clear_caches()
        with harness.profile() as profile:
            function(*arguments)
        of_jax = [built for built in profile.builds if built.function.origin == "jax"]
        return "batched" in str([profile.cause_of(built) for built in of_jax])

    assert not batched(jax.jit(outer), np.ones(5))
    assert batched(jax.vmap(jnp.matmul), *[np.ones((2, 3, 3))] * 2)


def test_static_functions_are_told_by_where_they_are_defined():
    @functools.partial(jax.jit, static_argnums=0)
    def minimum(loss, x):
        return x - jax.grad(loss)(x)

    def squared(shift):
        return lambda x: (x - shift) ** 2

    x = np.float32(1)
    with harness.profile() as profile:
        for shift in (1.0, 2.0, 3.0):
            minimum(lambda x, shift=shift: abs(x - shift), x)
            minimum(squared(shift), x)
    causes = [profile.cause_of(built) for built in profile.builds]
    assert [bool(cause.remedy) for cause in causes] == [False, False] + [True] * 4
    said = [one.text for one in findings(profile) if "2 times more" in one.text]
    assert len(said) == 2
    assert all("a function made anew each time: `<lambda>` at test_texts" in one for one in said)


def test_to_make_a_function_once_is_no_remedy_where_it_computes_something_else():
    """As of samplers for several models: each has its own step, jitted where it is made."""

    def sampler(density):
        return jax.jit(lambda x: x - jax.grad(density)(x))

    def scaled(scale):
        return lambda x: jnp.sum(scale * x**2)

    def steep(x):
        return jnp.sum(jnp.exp(x) * x**3)

    with harness.profile() as profile:
        for density in (scaled(2.0), steep, scaled(3.0), steep):
            sampler(density)(np.ones(4, np.float32))
    causes = [profile.cause_of(built) for built in profile.builds]
    kinds = ["first", "another program", "new function object", "new function object"]
    assert [cause.kind for cause in causes] == kinds
    assert causes[1].remedy.startswith("If only values differ in it")
    passed = "makes it, and pass what changes in it as an argument."
    assert [cause.remedy.endswith(passed) for cause in causes[2:]] == [True, True]
    assert "building again (avoidable)," in " ".join(profile.summary())
    assert " building again," in " ".join(profile.summary()), "the other program is not avoidable"


def test_what_is_only_traced_is_not_to_be_jitted():
    """As of the dtype of each number that jmp asks for: `jax.eval_shape(lambda: x).dtype`."""
    with harness.profile() as profile:
        for x in (1.0, 2.0):
            jax.eval_shape(lambda x=x: jnp.sqrt(x))
    *_, cause = [profile.cause_of(one) for one in profile.builds if one.function.origin != "jax"]
    assert cause.remedy.startswith("Define it once, outside the loop or function that makes it, a")


def test_a_function_made_anew_is_built_for_another_class_in_any_case():
    """As of `em_step` of dynamax: each model makes its own, for parameters of another class."""
    trees = (f"c: (CustomNode(lib.{name}.State[()], [*]), *)" for name in ("es", "ga"))
    calls = [(5, given(number, tree=tree), number) for number, tree in enumerate(trees, 1)]
    _, found = causes(PROGRAM, calls)
    assert (found.kind, found.remedy) == ("new function object", "")


def test_what_jax_gives_its_own_operation_is_no_function_of_a_loop():
    with harness.profile() as profile:
        jnp.ones(7).at[jnp.arange(3)].add(1.0)
        jax.lax.reduce(np.ones(7), np.float64(0), lambda a, b: a + 2 * b, (0,))
    through = {built.function.name: built.function.through for built in profile.builds}
    assert through["scatter-add"] == ""
    assert "<lambda> at " in through["reduce"]


def test_a_mesh_is_told_of_once():
    made = Made()
    for axes in ("i=2", "i=4"):
        context = {"abstract_mesh_context_manager": axes, "mesh": axes}
        made.build("step", stages=("trace",), context=context)
    cause = decide(made.profile().builds)["made", 2]
    assert cause.sentence == "`mesh` of JAX's configuration or context was i=2, now i=4."
