"""Causes and remedies as codes: of structures, static values, types, and what libraries make."""

from __future__ import annotations

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harness
from harness.jaxhooks import events
from harness.output.profile_causes import sentence
from harness.output.profile_remedies import remedy_text
from harness.profiles.causes.again import is_transformed
from harness.profiles.causes.cause import Remedy
from harness.profiles.causes.decide import decide
from harness.profiles.findings import findings
from harness.profiles.model import Process
from harness.profiles.summary import shares
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


def library(*around):
    file = PACKAGES + "solve/core.py"
    return events.Function(1, "step", "make.<locals>.step", file, 3, "library", 0, around)


PROGRAM = events.Function(1, "step", "step", "/home/user/fit.py", 3, "program")
LOOP = events.Function(1, "scan", "scan", PACKAGES + "jax/_src/lax/loops.py", 3, "jax")

X = events.Leaf("x", "float32[4]")


NO_TREE = events.Tree("tuple", (None, None, None))


def given(number, *statics, tree=NO_TREE, leaf=X):
    return of_c(number, tree, (leaf,), statics)


def of_c(number, tree, leaves=(X,), statics=()):
    """Return arguments of which `c` has a structure."""
    trees = (events.Dynamic("c", tree),)
    return events.Arguments(number, leaves, statics, trees)


def sentence_of(cause, function):
    """Return the sentence about a build of a function."""
    lines = (logs.started(), function, logs.build(1, 1, 2))
    (built,) = Process("memory", lines[0], lines).builds
    return sentence(cause, built)


def second(*arguments, function=PROGRAM):
    """Return the cause of the second of two builds."""
    return causes(function, [(5, one, 1) for one in arguments])[1]


def node(kind, *fields, children=(None,)):
    """Return a structure of a class with fixed fields, each `NAME=VALUE` or a value alone."""
    parts = [one.partition("=") if "=" in one else ("", "", one) for one in fields]
    named = tuple(events.FixedField(name, value) for name, _, value in parts)
    return events.Tree(kind, children, fields=named)


def nodes(kind, *children):
    names = tuple(f"'{n}'" for n in "abc"[: len(children)]) if kind == "dict" else ()
    return events.Tree(kind, children, names)


INIT = "<function chain.<locals>.init at 0x7f{}>"
HELD = [node("State", f"init={INIT.format(n)}") for n in (1, 2)]


@pytest.mark.parametrize(
    ("before", "after", "form", "texts"),
    [
        (node("Config", "rate=1"), node("Config", "rate=2"), "numbers", ("rate=1", "rate=2")),
        (node("Own", "5"), node("Own", "6"), "numbers", ("5", "6")),
        (
            node("Config", "rate=1", "by=V", "seed=3"),
            node("Config", "rate=2", "by=V", "seed=4"),
            "numbers",
            ("rate=1, seed=3", "rate=2, seed=4"),
        ),
        (node("C", "act='tanh'"), node("C", "act='relu'"), "fields", ("act='tanh'", "act='relu'")),
        (
            node("C", "rate=1"),
            node("C", "rate=2", children=(None, None)),
            "other",
            ("C(*, rate=1)", "C(*, *, rate=2)"),
        ),
        (
            nodes("tuple", node("C", "rate=1"), nodes("list", None)),
            nodes("tuple", node("C", "rate=2"), nodes("list")),
            "fields and more",
            ("rate=1", "rate=2"),
        ),
        (
            node("State", f"init={INIT.format(1)}", "n=3"),
            node("State", f"init={INIT.format(2)}", "n=4"),
            "fields and more",
            ("n=3", "n=4"),
        ),
        (*HELD, "object", ("chain.<locals>.init",) * 2),
        (
            nodes("dict", None),
            nodes("dict", None, None),
            "",
            ("{'a': *}", "{'a': *, 'b': *}"),
        ),
        (nodes("tuple", None), nodes("list", None), "", ("(*,)", "[*]")),
        (nodes("tuple", None), nodes("list", None, None), "other", ("(*,)", "[*, *]")),
        (nodes("None"), None, "", ("None", "")),
        (node("lib.es.State"), node("lib.ga.State"), "class", ("es.State", "ga.State")),
        (
            nodes("tuple", node("lib.es.State"), None),
            nodes("tuple", node("lib.ga.State"), None),
            "inside",
            ("es.State", "ga.State"),
        ),
        (
            node("m.make.<locals>.Box", "1"),
            node("m.make.<locals>.Box", "1")._replace(number=2),
            "class recreated",
            ("make.Box", "make.Box"),
        ),
        (
            nodes("dict", None),
            events.Tree("collections.OrderedDict", (None,), ("'a'",)),
            "dictionary",
            ("dict", "collections.OrderedDict"),
        ),
        (
            node("collections.defaultdict", "default_factory=<class 'int'>"),
            node("collections.defaultdict", "default_factory=<class 'float'>"),
            "dictionary",
            ("default_factory=<class 'int'>", "default_factory=<class 'float'>"),
        ),
    ],
)
def test_a_structure_is_described_by_what_differs(before, after, form, texts):
    found = second(given(1, tree=before), given(2, tree=after))
    assert (found.kind, found.argument, found.form) == ("pytree", "c", form)
    assert (found.before, found.after) == texts
    remedies = {
        "": "same structure",
        "object": "held object once",
        "numbers": "field as data",
        "class recreated": "class once",
        "dictionary": "one kind of dictionary",
    }
    assert (found.remedy and found.remedy.kind) == remedies.get(form)


def test_the_one_field_that_differs_is_named():
    found = second(
        given(1, tree=node("lib.Option", "opt=<Opt>", "opt.iterations=4")),
        given(2, tree=node("lib.Option", "opt=<Opt>", "opt.iterations=8")),
    )
    assert found.remedy[:4] == ("field as data", "c", "opt.iterations", "Option")
    assert "`opt.iterations` of `Option`" in remedy_text(found.remedy)


def test_a_field_that_sizes_the_arrays_beside_it_is_not_to_be_one_with_data():
    """As of the width of a layer of flax: a model of another width is another program."""
    trees = [node("Config", f"width={width}") for width in (16, 32)]

    def causes_of(*sizes):
        leaves = [
            (events.Leaf("c[0].w", f"float32[{n}]"), events.Leaf("c2", "f32[]")) for n in sizes
        ]
        return second(*map(of_c, (1, 2), trees, leaves))

    assert causes_of(16, 16).remedy.kind == "field as data"
    assert causes_of(16, 32).remedy is None


def test_an_argument_whose_name_begins_like_another_differs_too():
    x = [(events.Leaf("x", f"f32[{n}]"), events.Leaf("x_mask", f"bool[{n}, 2]")) for n in (1, 2)]
    found = second(*(events.Arguments(n, leaves, ()) for n, leaves in enumerate(x, 1)))
    assert found.remedy.left == ((("shape", "x_mask"),), 1)


def test_what_is_given_to_filter_jit_in_place_of_none_need_be_no_array():
    static = events.Static("c", "float", "2.0")
    found = second(given(1, tree=nodes("None")), given(2, static, tree=None), function=FILTERED)
    assert (found.argument, found.before, found.ways) == ("c", "None", ("", "array"))
    assert found.also.first[0][0] == "pytree"
    assert "a value now" in sentence_of(found, FILTERED)


def test_long_texts_are_shown_from_before_their_first_difference():
    same = "x" * 300
    trees = [node("Graph", f"a={same}", f"rate={rate}", f"z={same}") for rate in ("'a'", "'b'")]
    trees = [nodes("tuple", tree, nodes("list", *[None] * n)) for n, tree in enumerate(trees)]
    found = second(*(given(number, tree=tree) for number, tree in enumerate(trees, 1)))
    assert found.before.startswith("rate='a'")
    deep = [nodes("tuple", *[nodes("None")] * 60, last) for last in (None, nodes("None"))]
    found = second(*(given(number, tree=tree) for number, tree in enumerate(deep, 1)))
    assert found.before.startswith("…")
    assert max(len(found.before), len(found.after)) < 125


@pytest.mark.parametrize(
    ("before", "after", "kind", "texts"),
    [
        ("float32[3]", "Tok", "dtype", ("float32[3]", "Tok")),
        ("Tok", "float32[3]", "dtype", ("Tok", "float32[3]")),
        ("Ref{float32[3,4]}", "Ref{float32[3]}", "shape", ("(3, 4)", "(3,)")),
        ("key<fry>[]", "key<fry>[2]", "shape", ("()", "(2,)")),
        ("int32[]", "~int32[]", "weak type", ("int32", "weak int32")),
    ],
)
def test_a_type_is_told_by_its_part_that_differs_or_whole(before, after, kind, texts):
    leaves = [
        events.Leaf("x", aval.lstrip("~"), weak=aval.startswith("~")) for aval in (before, after)
    ]
    found = second(*(given(number, leaf=leaf) for number, leaf in enumerate(leaves, 1)))
    assert (found.kind, found.values) == (kind, texts)


def test_a_weak_type_may_come_from_what_an_array_is_made_of():
    leaves = [events.Leaf("state.mu", "float32[]", weak=weak) for weak in (True, False)]
    found = second(*(given(number, leaf=leaf) for number, leaf in enumerate(leaves, 1)))
    assert found.remedy[:2] == ("explicit dtype", "state.mu")


def test_what_a_library_makes_anew_is_told_by_the_line_of_the_program():
    _, found = causes(library(), [(5, given(1), 1), (5, given(1), 2)])
    assert found.kind == "new function object"
    assert found.remedy == Remedy("library object", library="solve", place="fit.py:5")
    assert "core.py:3 (solve)" in sentence_of(found, library())


def test_another_use_of_a_library_is_told_without_a_remedy():
    rates = [events.Static("rate", "float", value) for value in ("1.0", "2.0")]
    calls = [(5, given(1, rates[0]), 1), (8, given(2, rates[1], tree=nodes("list")), 1)]
    _, found = causes(library(), calls)
    assert (found.form, found.library, found.place) == ("use", "solve", "fit.py:5")
    assert (found.alike, found.remedy) == ((("c", "rate"), 2), None)
    _, same_line = causes(library(), [calls[0], (5, *calls[1][1:])])
    assert (same_line.kind, same_line.form, same_line.argument) == ("pytree", "other", "c")


def test_a_static_argument_that_becomes_an_array():
    leaves = X, events.Leaf("n", "int32[]")
    both = given(1, events.Static("n", "int", "2")), of_c(2, NO_TREE, leaves)
    found = second(*both, function=FILTERED)
    assert (found.form, found.values) == ("array", ("2", "array"))
    back = second(*both[::-1], function=FILTERED)
    assert back.values == ("array", "2")
    assert sentence_of(back, FILTERED) == "`n` was an array, now it is the static 2."


BODY = f"<run.<locals>.body at {PACKAGES}solve/core.py:88>"
LAMBDA = "<main.<locals>.<lambda> at /home/user/fit.py:4>"
FUNCTIONS = "(<f at /a/c.py:{}>, <<lambda>.<locals>.<lambda> at /a b/d.py:8>, <T at home>)"
FILTERED = library(events.Around("equinox.filter_jit"))


@pytest.mark.parametrize(
    ("function", "kinds", "values", "form", "remedy"),
    [
        (library(), "function", (BODY, BODY), "recreated", "library object"),
        (FILTERED, "function", (LAMBDA, LAMBDA), "recreated", "static function once"),
        (FILTERED, "float", ("1.0", "2.0"), "", "filter_jit array"),
        (FILTERED, "int", ("1", "2"), "", "filter_jit array unless it sizes"),
        (PROGRAM, "int", ("2", "3"), "", "dynamic unless it sizes"),
        (PROGRAM, "numpy.int64", ("np.int64(2)", "np.int64(3)"), "", "dynamic unless it sizes"),
        (PROGRAM, "float", ("0.5", "0.25"), "", "dynamic"),
        (PROGRAM, "float", ("nan", "nan"), "recreated", "dynamic"),
        (PROGRAM, "bool", ("True", "False"), "", "dynamic bool"),
        (library(), "bool", ("True", "False"), "", None),
        (PROGRAM, "str", ("'train'", "'eval'"), "", None),
        (PROGRAM, "tuple", ("('flat',)", "('deep', 2)"), "", None),
        (PROGRAM, "NoneType", ("3", "None"), "", None),
        (PROGRAM, "str", ("'step 9'", "'step 10'"), "", "few values"),
        (PROGRAM, "type", ("<class 'a'>", "<class 'b'>"), "", None),
        (PROGRAM, "m.C", ("<C>", "<C>"), "recreated", "equality"),
        (PROGRAM, "AB", ("<C>", "<C>"), "another", None),
        (
            PROGRAM,
            "tuple",
            (FUNCTIONS.format(7), FUNCTIONS.format(8)),
            "",
            "few values",
        ),
    ],
)
def test_a_static_value_has_a_remedy_that_can_stand_for_it(function, kinds, values, form, remedy):
    kinds = kinds if kinds == "AB" else [kinds] * 2
    statics = (
        events.Static("n", kind, text, object=number)
        for number, (kind, text) in enumerate(zip(kinds, values, strict=True), 1)
    )
    both = (given(static.object, static) for static in statics)
    found = second(*both, function=function)
    assert (found.form, found.remedy and found.remedy.kind) == (form, remedy)


def test_functions_in_a_static_value_are_named_with_their_lines():
    statics = (events.Static("n", "tuple", FUNCTIONS.format(n), object=n) for n in (7, 8))
    found = second(*(given(static.object, static) for static in statics))
    assert found.after == "(f (c.py:8), <lambda> (d.py:8), <T at home>)"


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
    assert (found.kind, found.values) == ("layout", ("usual", "{0,1}"))
    text = sentence_of(found, LOOP)
    assert "the layout of `x` was the usual order, now {0,1}." in text
    both = (
        given(n, leaf=replace(X, sharding=f"SingleDeviceSharding() on cpu:{n}", committed=True))
        for n in (1, 2)
    )
    _, found = causes(LOOP, [(5, one, 1) for one in both], "lower", "compile")
    assert (found.kind, found.values) == ("device", ("cpu:1", "cpu:2"))


@pytest.mark.parametrize(
    ("kind", "text"), [("tuple", "(0, 1, ...)"), ("main.Config", "Config(" + "x" * 193)]
)
def test_a_value_whose_end_is_not_recorded_is_not_taken_for_another_object(kind, text):
    found = second(*(given(n, events.Static("n", kind, text, object=n)) for n in (1, 2)))
    assert found.ways == ("rest", "rest")
    assert len(found.after) < 90
    assert found.remedy.kind == "few values"


def test_what_is_traced_of_jaxs_in_a_function_needs_no_remedy():
    add = events.Function(1, "add", "add", PACKAGES + "jax/_src/numpy/ufuncs.py", 1208, "jax")
    calls = [(5, given(n, leaf=events.Leaf("x", f"float32[{n}]")), 1) for n in (1, 2)]
    _, found = causes(add, calls, "trace")
    assert (found.kind, found.remedy) == ("shape", None)


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
        return any(map(is_transformed, of_jax))

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
    again = [one for one in findings(profile) if one.kind == "again" and one.count > 1]
    assert [(one.count, one.cause.form, one.cause.after) for one in again] == [
        (2, "recreated", "<lambda>")
    ] * 2


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
    remedies = [cause.remedy.kind for cause in causes[1:]]
    assert remedies == ["pass what differs", *["jit once and pass"] * 2]
    taken = shares(profile)
    assert taken["avoidable"] > 0 < taken["again"], "the other program is not avoidable"


def test_what_is_only_traced_is_not_to_be_jitted():
    """As of the dtype of each number that jmp asks for: `jax.eval_shape(lambda: x).dtype`."""
    with harness.profile() as profile:
        for x in (1.0, 2.0):
            jax.eval_shape(lambda x=x: jnp.sqrt(x))
    *_, cause = [profile.cause_of(one) for one in profile.builds if one.function.origin != "jax"]
    assert cause.remedy.kind == "define once and pass"


def test_a_function_made_anew_is_built_for_another_class_in_any_case():
    """As of `em_step` of dynamax: each model makes its own, for parameters of another class."""
    trees = (node(f"lib.{name}.State") for name in ("es", "ga"))
    calls = [(5, given(number, tree=tree), number) for number, tree in enumerate(trees, 1)]
    _, found = causes(PROGRAM, calls)
    assert (found.kind, found.remedy) == ("new function object", None)


def test_what_jax_gives_its_own_operation_is_no_function_of_a_loop():
    with harness.profile() as profile:
        jnp.ones(7).at[jnp.arange(3)].add(1.0)
        jax.lax.reduce(np.ones(7), np.float64(0), lambda a, b: a + 2 * b, (0,))
    around = {built.function.name: built.function.around for built in profile.builds}
    assert around["scatter-add"] == ()
    assert [one.name for one in around["reduce"]] == ["<lambda>"]


def test_a_mesh_is_told_of_once():
    made = Made()
    for axes in ("i=2", "i=4"):
        context = {"abstract_mesh_context_manager": axes, "mesh": axes}
        made.build("step", stages=("trace",), context=context)
    cause = decide(made.profile().builds)["made", 2]
    assert cause[:4] == ("configuration", "mesh", "i=2", "i=4")
    assert cause.also.number == 0
