"""Structures, static arguments and unused arguments that differ: what is advised, and followed."""

from __future__ import annotations

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harness
from harness.jaxhooks import structures

X = np.ones(4, np.float32)


def traced(function, *calls):
    """Trace a function with each of these arguments, (args, kwargs)."""
    for args, kwargs in calls:
        function.trace(*args, **kwargs)


def called(*arguments):
    return [((one,), {}) for one in arguments]


def tuple_class(name="N"):
    return collections.namedtuple(name, "x")


def first_field(t):
    return t.x * 2


def of_a(d):
    return d["a"] * 2


@functools.partial(jax.jit, static_argnames="n")
def scaled(x, n=2):
    return x * n


def first_alone(x, other):
    return x * 2


def a_alone(tree):
    return tree["a"] * 2


DICTS = [
    {"a": X},
    collections.OrderedDict(a=X),
    collections.defaultdict(int, a=X),
    collections.defaultdict(float, a=X),
]
OTHERS = [np.ones(size, np.float32) for size in (3, 5, 7)]
WAYS = [((X,), {}), ((X,), {"n": 2}), ((X, 2), {})]


@pytest.mark.parametrize(
    ("function", "calls", "kind", "argument", "advised"),
    [
        (
            first_field,
            called(*(tuple_class()(X) for _ in range(3))),
            "pytree",
            "t",
            "class once",
        ),
        (of_a, called(*DICTS), "pytree", "d", "one kind of dictionary"),
        (scaled, WAYS, "pytree", "n", "by keyword"),
        (first_alone, [((X, one), {}) for one in OTHERS], "unused argument", "other", "leave out"),
        # A leaf of a library's state (optax 0.2.8, lbfgs) cannot be left out: it can have a dtype.
        (
            a_alone,
            called(*({"a": X, "b": one} for one in (jnp.asarray(1.0), jnp.float32(1.0)))),
            "weak type",
            "tree['b']",
            "explicit dtype",
        ),
        *(
            pytest.param(*row, marks=pytest.mark.nightly)
            for row in (
                (
                    lambda t: t[0].x * 2,
                    called(*([tuple_class()(X)] for _ in range(3))),
                    "pytree",
                    "t",
                    "class once",
                ),
                (
                    lambda t: t.x.x * 2,
                    called(*(tuple_class("Outer")(tuple_class()(X)) for _ in range(2))),
                    "pytree",
                    "t",
                    "class once",
                ),
                (of_a, called(DICTS[2], DICTS[3]), "pytree", "d", "one kind of dictionary"),
                (of_a, called(DICTS[0], DICTS[2]), "pytree", "d", "one kind of dictionary"),
                (scaled, WAYS[:2], "pytree", "n", "by keyword"),
                (scaled, WAYS[1:], "pytree", "n", "by keyword"),
                (
                    a_alone,
                    called(*({"a": X, "b": one} for one in OTHERS)),
                    "unused argument",
                    "tree['b']",
                    "leave out",
                ),
                (
                    first_alone,
                    [((X, np.ones(3, kind)), {}) for kind in (np.float32, np.int32, np.int8)],
                    "unused argument",
                    "other",
                    "leave out",
                ),
            )
        ),
    ],
)
def test_what_differs_has_a_cause_and_a_remedy(function, calls, kind, argument, advised):
    jax.clear_caches()
    jitted = function if function is scaled else jax.jit(function)
    with harness.profile(sample_ms=0) as profile:
        traced(jitted, *calls)
    first, *causes = [profile.cause_of(built) for built in profile.builds]
    assert first.kind == "first"
    assert [(one.kind, one.argument) for one in causes] == [(kind, argument)] * (len(calls) - 1)
    assert {one.remedy.kind for one in causes} == {advised}


def test_fields_of_a_class_of_attrs_are_named_as_those_of_a_dataclass():
    attrs = pytest.importorskip("attrs")
    fields = {"rate": attrs.field(), "mode": attrs.field(eq=False)}
    kind = attrs.make_class("Rates", fields, frozen=True)
    jitted = jax.jit(lambda x, rates: x * rates.rate, static_argnames="rates")
    with harness.profile(sample_ms=0) as profile:
        for rate in (1.0, 2.0):
            jitted(X, rates=kind(rate, "a"))
    _, cause = [profile.cause_of(built) for built in profile.builds]
    assert (cause.argument, cause.before, cause.after) == ("rates.rate", "1.0", "2.0")


@pytest.mark.parametrize(
    ("file", "place"),
    [("<ipython-input-1-2b3c>", "<ipython-input-1-2b3c>:2"), ("<attrs generated eq C>", "")],
)
def test_an_equality_that_was_typed_in_a_cell_is_no_generated_one(file, place):
    names = {}
    source = "class C:\n    def __eq__(self, other): return True"
    exec(compile(source, file, "exec"), names)
    assert structures.equality_of(names["C"]) == place


def test_the_remedies_followed_build_once_and_change_no_result():
    one = tuple_class()
    rows = [
        (jax.jit(first_field), called(*(one(X) for _ in range(3)))),
        (jax.jit(of_a), called(*map(dict, DICTS))),
        (scaled, [((X,), {"n": 2})] * 3),
        (jax.jit(first_alone), [((X, None), {})] * 3),
    ]
    for function, calls in rows:
        with harness.profile(sample_ms=0) as profile:
            results = [function(*args, **kwargs) for args, kwargs in calls]
        assert sum(built.compiles for built in profile.builds) == 1
        assert all(np.array_equal(result, X * 2) for result in results)


def test_a_dictionary_with_other_keys_is_not_only_of_another_kind():
    with harness.profile(sample_ms=0) as profile:
        traced(
            jax.jit(of_a),
            *called(collections.defaultdict(int, a=X), collections.defaultdict(int, a=X, b=X)),
        )
    assert profile.cause_of(profile.builds[1]).form != "dictionary"
