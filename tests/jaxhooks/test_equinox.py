"""What `equinox.filter_jit` gives to JAX is described in the words of the call's author."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harness.jaxhooks.statics import filtered_call
from harness.profiles.causes.pytree import tree_text
from tests.jaxhooks.recorded import builds

eqx = pytest.importorskip("equinox", reason="equinox is not installed: pip install equinox")

X = np.ones((4, 3), np.float32)
MODEL = {"w": X, "activation": "relu", "b": X}


class Model(eqx.Module):
    w: jax.Array
    scale: float

    def __call__(self, x):
        return self.scale * x @ self.w

    @eqx.filter_jit
    def doubled(self, x):
        return 2 * self(x)


def step(model, x, rate, *, verbose=False):
    return rate * (model["w"] * x + model["b"])


def only(*, rate):
    return jnp.full(3, rate)


def scaled(model, x, times):
    return times * model(x)


@pytest.mark.parametrize(
    ("call", "name", "tree", "paths", "statics"),
    [
        (
            lambda: eqx.filter_jit(step)(MODEL, X, 0.1, verbose=True),
            "step",
            "model: {'activation': *, 'b': *, 'w': *}, x, rate, verbose=",
            ["model['b']", "model['w']", "x"],
            {"model['activation']": "'relu'", "rate": "0.1", "verbose": "True"},
        ),
        (  # what is donated comes first
            lambda: eqx.filter_jit(step, donate="all-except-first")(MODEL, jnp.asarray(X), 0.1),
            "step",
            "model: {'activation': *, 'b': *, 'w': *}, x, rate",
            ["x", "model['b']", "model['w']"],
            {"model['activation']": "'relu'", "rate": "0.1"},
        ),
        (lambda: eqx.filter_jit(only)(rate=0.2), "only", "rate=", [], {"rate": "0.2"}),
        (
            lambda: eqx.filter_jit(scaled)(Model(X.T, 2.0), X, 2),
            "scaled",
            "model: Model[...], x, times",
            ["model.w", "x"],
            {"model.scale": "2.0", "times": "2"},
        ),
        (
            lambda: eqx.filter_jit(Model(X.T, 2.0))(X),
            "__call__",
            "Model: Model[...], x",
            ["x", "Model.w"],
            {"Model.scale": "2.0"},
        ),
        (
            lambda: Model(X.T, 2.0).doubled(X),
            "doubled",
            "self: Model[...], x",
            ["self.w", "x"],
            {"self.scale": "2.0"},
        ),
        (
            lambda: eqx.filter_jit(lambda a, b: a * b).lower(X, 2).compile(),
            "<lambda>",
            "a, b",
            ["a"],
            {"b": "2"},
        ),
    ],
)
def test_a_call_is_given_in_the_words_of_its_author(call, name, tree, paths, statics):
    jax.clear_caches()
    built = next(one for one in builds(call) if one.function.qualname.rpartition(".")[2] == name)
    assert (built.function.file, built.function.origin) == (__file__, "program")
    labels = [f"{one.name}{'=' * one.keyword}" for one in built.arguments.trees]
    trees = [one.tree and f": {tree_text(one.tree)}" for one in built.arguments.trees]
    found = ", ".join(map("".join, zip(labels, (one or "" for one in trees), strict=True)))
    assert re.sub(r"[\w.]*\bModel\(.*?\)", "Model[...]", found) == tree
    assert [leaf.path for leaf in built.arguments.leaves] == paths
    assert {static.name: static.value for static in built.arguments.statics} == statics


def wrapped(file):
    """Return a function like the one that `filter_jit` gives to `jax.jit`, from a file."""
    found = {}
    text = "def fun_wrapped(dynamic_donate, dynamic_nodonate, static):\n    return None"
    exec(compile(text, file, "exec"), found)
    return found["fun_wrapped"]


OWN = wrapped("/site-packages/equinox/_jit.py")
PARTS = ("first", "fun", "rest")
GIVEN = ({}, {name: (X,) for name in PARTS}, [((None,), jax.tree.structure(X))] * 3)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (wrapped("/home/someone/jit.py"), GIVEN),
        (step, GIVEN),
        (OWN, (1, 2, 3)),
        (OWN, GIVEN[:2]),
        (OWN, ({}, {"first": (X,)}, GIVEN[2])),
        (OWN, (*GIVEN[:2], ())),
        (object(), ()),
    ],
)
def test_any_other_function_is_left_to_jax(function, args):
    assert filtered_call(function, args) is None
