from __future__ import annotations

import jax
import numpy as np
import pytest

from harness.watch.signatures import argument_text
from harness.watch.statics import filtered_call as call_of

WRAPPED = """
def fun_wrapped(dynamic_donate, dynamic_nodonate, static):
    return None
"""


def wrapped(file="/site-packages/equinox/_jit.py"):
    """A function like the one that `filter_jit` gives to `jax.jit`."""
    found = {}
    exec(compile(WRAPPED, file, "exec"), found)
    return found["fun_wrapped"]


def parted(value):
    """Arrays and the rest, each with None where the other has the leaf: equinox's own form."""
    leaves, tree = jax.tree_util.tree_flatten(value)
    arrays = tuple(leaf if isinstance(leaf, np.ndarray) else None for leaf in leaves)
    return arrays, (tuple(None if isinstance(x, np.ndarray) else x for x in leaves), tree)


def handed_over(function, first, rest, keywords, donated=()):
    """What JAX gets for `filter_jit(function)(first, *rest, **keywords)`."""
    arrays, static = {}, {}
    parts = {"fun": function, "first": first, "rest": ((*rest, None), keywords)}
    for name, value in parts.items():
        arrays[name], static[name] = parted(value)
    return (
        {name: arrays[name] for name in arrays if name in donated},
        {name: arrays[name] for name in arrays if name not in donated},
        tuple(static[name] for name in ("fun", "first", "rest")),
    )


def step(model, x, rate, *, verbose=False):
    """A function of the user's."""


ONES = np.ones(3)
MODEL = {"w": ONES, "activation": "relu", "b": ONES}


def test_a_call_is_given_in_the_words_of_its_author():
    call = call_of(wrapped(), handed_over(step, MODEL, (ONES, 0.1), {"verbose": True}))
    assert call.function is step
    assert call.paths == ("model['b']", "model['w']", "x")
    assert call.statics == (("model['activation']", "relu"), ("rate", 0.1), ("verbose", True))
    assert [argument_text(*one) for one in call.trees] == [
        "model: {'activation': *, 'b': *, 'w': *}",
        "x",
        "rate",
        "verbose=",
    ]


def test_arrays_are_named_in_the_order_in_which_jax_flattens_them():
    args = handed_over(step, MODEL, (ONES, 0.1), {}, donated=("rest", "fun"))
    assert call_of(wrapped(), args).paths == ("x", "model['b']", "model['w']")
    assert len(jax.tree.leaves(args[:2])) == 3


def test_a_call_without_positional_arguments_is_described():
    def only(*, rate):
        """A function of the user's."""

    none = handed_over(only, None, (), {"rate": 0.1})
    # equinox puts its None behind the last argument, here the first
    none = (none[0], none[1], (*none[2][:2], parted(((), {"rate": 0.1}))[1]))
    call = call_of(wrapped(), (none[0], {**none[1], "rest": (None,)}, none[2]))
    assert call.statics == (("rate", 0.1),)
    assert call.paths == ()


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (wrapped("/home/someone/jit.py"), handed_over(step, ONES, (), {})),
        (step, (1, 2, 3)),
        (wrapped(), (1, 2, 3)),
        (wrapped(), (1, 2)),
        (wrapped(), ({}, {"first": (ONES,)}, ())),
        (object(), ()),
    ],
)
def test_any_other_function_is_left_to_jax(function, args):
    assert call_of(function, args) is None


def test_what_equinox_really_hands_over_is_understood(tmp_path):
    eqx = pytest.importorskip("equinox", reason="equinox is not installed: pip install equinox")
    import harness

    class Model(eqx.Module):
        w: jax.Array
        scale: float

        def __call__(self, x):
            return self.scale * x @ self.w

    @eqx.filter_jit
    def predict(model, x, times):
        return times * model(x)

    x = np.ones((4, 3), np.float32)
    with harness.profile(tmp_path / "p") as profile:
        for times in (1, 2):
            predict(Model(x.T, 2.0), x, times)
    one, two = (built for built in profile.builds if built.function.name == "predict")
    assert one.function.file == __file__
    assert one.function.origin == "program"
    assert [leaf.path for leaf in one.arguments.leaves] == ["model.w", "x"]
    assert [(static.name, static.value) for static in two.arguments.statics] == [
        ("model.scale", "2.0"),
        ("times", "2"),
    ]


def test_a_model_that_is_called_itself_is_an_argument_too():
    eqx = pytest.importorskip("equinox", reason="equinox is not installed: pip install equinox")
    import harness

    class Scaled(eqx.Module):
        w: jax.Array
        scale: float

        def __call__(self, x):
            return self.scale * x @ self.w

        @eqx.filter_jit
        def doubled(self, x):
            return 2 * self(x)

    x = np.ones((4, 3), np.float32)
    with harness.profile() as profile:
        eqx.filter_jit(Scaled(x.T, 2.0))(x)
        Scaled(x.T, 2.0).doubled(x)
        eqx.filter_jit(lambda a, b: a * b).lower(x, 2).compile()
    built = {b.function.qualname.rpartition(".")[2]: b for b in profile.builds}
    assert [leaf.path for leaf in built["__call__"].arguments.leaves] == ["x", "Scaled.w"]
    assert built["__call__"].arguments.tree.startswith("Scaled: CustomNode(")
    assert [leaf.path for leaf in built["doubled"].arguments.leaves] == ["self.w", "x"]
    assert [static.name for static in built["<lambda>"].arguments.statics] == ["b"]
    assert {b.function.file for b in built.values()} >= {__file__}
