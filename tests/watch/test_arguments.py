"""What is written down of arguments and settings: all that JAX's caches look at, and no more."""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from harness.watch import statics
from harness.watch.identity import MOST_KEPT, Numbers
from tests.watch.recorded import builds

X = np.ones(3, np.float32)


def leaves(function, *args, **kwargs):
    (built,) = builds(lambda: jax.jit(function)(*args, **kwargs))
    return built.arguments.leaves


def test_leaves_are_named_in_the_users_words():
    def f(x, params, *rest, scale):
        return x

    found = leaves(f, X, {"w": [X, 1.0]}, 2, scale=np.int16(3))
    assert [leaf.path for leaf in found] == [
        "x",
        "params['w'][0]",
        "params['w'][1]",
        "rest[0]",
        "scale",
    ]
    assert [(leaf.aval, leaf.weak, leaf.kind) for leaf in found] == [
        ("float32[3]", False, "numpy.ndarray"),
        ("float32[3]", False, "numpy.ndarray"),
        ("float32[]", True, "float"),
        ("int32[]", True, "int"),
        ("int16[]", False, "numpy.int16"),
    ]


def test_the_tree_tells_a_keyword_from_a_position():
    def f(x, y):
        return y

    jitted = jax.jit(f)

    def run():
        jitted(X, {"a": X, "b": None})
        jitted(X, y=X)

    trees = [built.arguments.tree for built in builds(run) if built.arguments]
    assert trees == ["x, y: {'a': *, 'b': None}", "x, y="]


def test_placement_is_seen_where_jax_sees_it():
    device = jax.devices()[0]
    mesh = Mesh(np.array([device]), ("i",))
    square = np.ones((2, 3), np.float32)
    layout = Format(Layout((1, 0)), SingleDeviceSharding(device))
    free = jnp.asarray(square)
    committed = jax.device_put(square, device)
    sharded = jax.device_put(square, NamedSharding(mesh, PartitionSpec("i")))
    turned = jax.device_put(square, layout)
    jitted = jax.jit(lambda x: x + 1)

    def run():
        for x in (free, committed, sharded, turned):
            jitted(x)

    found = [built.arguments.leaves[0] for built in builds(run) if built.arguments]
    assert [leaf.committed for leaf in found] == [False, True, True, True]
    assert found[2].sharding == "NamedSharding(P('i',); i=1 auto) on cpu:0"
    assert [leaf.layout for leaf in found] == ["", "", "", "(1, 0)"]


def test_an_extended_dtype_and_a_donated_buffer():
    key, given = jax.random.key(0), jnp.ones(4)

    @functools.partial(jax.jit, donate_argnums=1)
    def f(key, buffer):
        return buffer * 2

    (built,) = builds(lambda: f(key, given))
    assert built.arguments.leaves[0].aval.startswith("key<")
    assert built.settings.jit["donated"] == "buffer"
    assert given.is_deleted()


def test_settings_hold_what_jit_was_given_and_the_context():
    with jax.default_matmul_precision("highest"):
        (built,) = builds(lambda: jax.jit(lambda x: x + 2, inline=True, keep_unused=True)(X))
    assert built.settings.jit["keep_unused"] == "True"
    assert "inline" in built.settings.jit
    assert built.settings.context["jax_default_matmul_precision"] == "highest"
    assert built.settings.context["jax_enable_compilation_cache"] in ("True", "False")
    assert not any(" at 0x" in text for text in built.settings.context.values())


def test_flags_of_the_environment_are_seen(monkeypatch):
    flags = os.environ.get("XLA_FLAGS", "")
    monkeypatch.setenv("XLA_FLAGS", f"{flags} --xla_dump_max_hlo_modules=3".strip())
    (built,) = builds(lambda: jax.jit(lambda x: x + 3)(X))
    assert "--xla_dump_max_hlo_modules=3" in built.settings.context["XLA_FLAGS"]


def test_a_new_function_object_and_a_new_jit_have_new_numbers():
    def make():
        return lambda x: x + 1

    same = make()

    def run():
        jax.jit(make())(X)
        jax.jit(make())(X)
        jitted = jax.jit(same)
        jitted(X)
        jitted(np.ones(4, np.float32))

    found = builds(run)
    objects = [built.line.object for built in found]
    assert len(set(objects)) == 3
    assert objects[2] == objects[3]
    assert found[2].line.wrapper == found[3].line.wrapper
    assert len({(built.function.file, built.function.line) for built in found}) == 1


# --- static values ---------------------------------------------------------------------------


class Plain:
    """Hashed by identity."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Hashed by content."""

    width: int


class Hostile:
    """Raises whatever is asked of it, but for its hash."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


def one(value):
    return statics.static("n", value, Numbers())


def test_types_are_told_apart():
    found = [one(value) for value in (1, True, 1.0, np.int64(1))]
    assert [(s.type, s.value) for s in found[:3]] == [
        ("int", "1"),
        ("bool", "True"),
        ("float", "1.0"),
    ]
    assert found[3].type == "numpy.int64"


def test_equal_values_have_one_number_and_equal_looking_ones_do_not():
    numbers = Numbers()

    def number(value):
        return statics.static("n", value, numbers).object

    assert number((1, 2)) == number((1, 2)) != number((1, 3))
    assert number(Options(1)) == number(Options(1)) != number(Options(2))
    first, second = Plain(), Plain()
    assert number(first) == number(first) != number(second)
    assert number("a" * 300) == number("a" * 300) != number("a" * 299 + "b")
    assert number(3) == 0


def test_a_hostile_value_does_no_harm():
    found = one(Hostile())
    assert "its repr raised RuntimeError" in found.value
    assert found.object
    assert len(one([[list(range(10_000))] * 1_000] * 1_000).value) <= statics.LONGEST
    assert one(np.ones((1_000, 1_000))).value == "<numpy.ndarray float64[1000, 1000]>"
    assert one(Plain()).value.startswith("<")
    assert "0x" not in one((Plain(), object())).value


def test_a_slow_repr_is_asked_once(monkeypatch):
    asked = []

    class Slow:
        def __repr__(self):
            asked.append(1)
            return "slow"

    monkeypatch.setattr(statics, "SLOW_S", -1.0)
    assert one(Slow()).value == "slow"
    assert one(Slow()).value.startswith("<")
    assert len(asked) == 1


def test_a_static_function_is_given_by_its_place():
    assert one(line_of_this).value.startswith(f"<line_of_this at {__file__}:")


def line_of_this():
    """Be a static argument."""


def test_a_model_that_equals_another_is_given_by_what_it_holds():
    @dataclasses.dataclass(frozen=True)
    class Model:
        width: int
        act: Any = line_of_this

        def __call__(self):
            """Be a model."""

    first, second = one(Model(1)).value, one(Model(2)).value
    assert "width=1" in first
    assert "width=2" in second
    assert "0x" not in first
    assert [one(kind).value for kind in (jnp.float32, jnp.bfloat16)] == [
        "<class 'jax.numpy.float32'>",
        "<class 'jax.numpy.bfloat16'>",
    ]


def test_equal_functions_have_one_number_while_the_first_lives():
    class Model:
        def method(self):
            """Be bound."""

    model, numbers = Model(), Numbers()
    first, second = model.method, model.method
    assert numbers.of_function(first) == numbers.of_function(second)
    before = numbers.of_function(first)
    del first
    assert numbers.of_function(second) != before
    assert numbers.of_function(line_of_this) == numbers.of_function(line_of_this)
    assert numbers.of_function(Hostile()) != numbers.of_function(Hostile())


def test_what_cannot_be_referred_to_weakly_is_kept_up_to_a_limit():
    numbers = Numbers()
    for number in range(MOST_KEPT + 100):
        numbers.of((number,))
        numbers.of_equal((number, number))
    assert len(numbers._kept) == len(numbers._equal) == MOST_KEPT


def test_a_hostile_static_argument_is_recorded_in_a_build():
    @functools.partial(jax.jit, static_argnums=1)
    def f(x, how):
        return x

    (built,) = builds(lambda: f(X, Hostile()))
    assert "its repr raised" in built.arguments.statics[0].value


def test_a_callable_object_is_found_in_its_class():
    class Layer:
        def __call__(self, x):
            return x

    (built,) = builds(lambda: jax.jit(Layer())(X))
    assert built.function.file == __file__
    assert built.function.qualname.endswith("Layer.__call__")


def test_a_bound_method_and_a_partial_are_found():
    class Model:
        def step(self, x, y=0):
            return x

    for function in (Model().step, functools.partial(Model().step, y=1)):
        (built,) = builds(lambda function=function: jax.jit(function)(X))  # type: ignore[misc]
        assert built.function.qualname.endswith("Model.step")
