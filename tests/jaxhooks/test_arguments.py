"""What is written down of arguments and settings: all that JAX's caches look at, and no more."""

import collections
import dataclasses
import functools
import os
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from harness.jaxhooks import statics, structures
from harness.jaxhooks.events import LONGEST_VALUE
from harness.jaxhooks.statics import MOST_KEPT, Numbers
from harness.jaxhooks.structures import structure
from tests.jaxhooks.recorded import builds, of_a_library

X = np.ones(3, np.float32)


def test_leaves_are_named_in_the_users_words():
    def f(x, params, *rest, scale):
        return x

    (built,) = builds(lambda: jax.jit(f)(X, {"w": [X, 1.0]}, 2, scale=np.int16(3)))
    assert [(one.path, one.aval, one.weak, one.kind) for one in built.arguments.leaves] == [
        ("x", "float32[3]", False, "numpy.ndarray"),
        ("params['w'][0]", "float32[3]", False, "numpy.ndarray"),
        ("params['w'][1]", "float32[]", True, "float"),
        ("rest[0]", "int32[]", True, "int"),
        ("scale", "int16[]", False, "numpy.int16"),
    ]


def test_the_tree_tells_a_keyword_from_a_position():
    jitted = jax.jit(lambda x, y: y)
    found = builds(lambda: [jitted(X, {"a": X, "b": None}), jitted(X, y=X)])
    assert [built.arguments.trees[1] for built in found if built.arguments] == [
        ("y", ("dict", (None, ("None", (), (), (), 1)), ("'a'", "'b'"), (), 1), False),
        ("y", None, True),
    ]


def test_placement_is_seen_where_jax_sees_it():
    device = jax.devices()[0]
    sharded = NamedSharding(Mesh(np.array([device]), ("i",)), PartitionSpec("i"))
    turned = Format(Layout((1, 0)), SingleDeviceSharding(device))
    square, jitted = jnp.ones((2, 3)), jax.jit(lambda x: x + 1)
    given = [square, *(jax.device_put(square, place) for place in (device, sharded, turned))]
    made = builds(lambda: [jitted(x) for x in given])
    found = [built.arguments.leaves[0] for built in made if built.arguments]
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
    first, second, third = (jax.jit(function) for function in [lambda x: x + 1 for _ in range(3)])
    found = builds(lambda: [first(X), second(X), third(X), third(np.ones(4, np.float32))])
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
    """Hashed by content; may be called, and says where its functions stand."""

    width: int
    act: Any = None

    def __call__(self):
        """Be a model."""


class Hostile:
    """Raises whatever is asked of it, but for its hash."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


class Silent:
    """Equal by what it holds; nobody but JAX asks it anything, and no one for its text."""

    def __init__(self, width, inside=None):
        self.width, self.inside = width, inside

    def __hash__(self):
        return hash(self.width)

    def __eq__(self, other):
        return isinstance(other, Silent) and self.width == other.width

    def __repr__(self):
        pytest.fail("its repr was called")


class Pair(NamedTuple):
    """Holds others."""

    width: int
    inside: Any


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["rate", "by"])
@dataclasses.dataclass
class Layer:
    """Has fixed fields that JAX was told by name."""

    w: Any
    by: Any
    rate: float


@functools.partial(jax.tree_util.register_dataclass, data_fields=[], meta_fields=["token"])
@dataclasses.dataclass(frozen=True)
class Account:
    """Keeps a field to itself."""

    token: str = dataclasses.field(repr=False)


def line_of_this():
    """Be a static argument."""


PLACE = f"<line_of_this at {__file__}:{line_of_this.__code__.co_firstlineno}>"


def one(value):
    return statics.static("n", value, Numbers())


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1, "int", "1"),
        (True, "bool", "True"),
        (1.0, "float", "1.0"),
        (np.int64(1), "numpy.int64", "np.int64(1)"),
        (np.ones((1_000, 1_000)), "numpy.ndarray", "<numpy.ndarray float64[1000, 1000]>"),
        (jnp.float32, "", "<class 'jax.numpy.float32'>"),
        (jnp.bfloat16, "", "<class 'jax.numpy.bfloat16'>"),
        (Hostile(), "Hostile", "<Hostile>"),
        (line_of_this, "function", PLACE),
        # No repr of the user's is called.
        (Silent(3), "Silent", "Silent(width=3, inside=None)"),
        (
            (Silent(3), Pair(5, Silent(6))),
            "tuple",
            "(Silent(width=3, inside=None), Pair(width=5, inside=Silent(width=6, inside=None)))",
        ),
        ([Account("s3cret")], "list", "[Account(token=<not shown>)]"),
        (Options(4, line_of_this), "Options", f"Options(width=4, act={PLACE})"),
    ],
)
def test_a_static_value_is_given_by_its_type_and_what_it_holds(value, kind, text):
    found = one(value)
    assert found.value == text
    assert kind in found.type


def test_a_text_has_no_address_and_an_end():
    assert one(Plain()).value.startswith("<")
    assert "0x" not in one((Plain(), object())).value
    assert one(functools.partial(max, Silent(3))).value.startswith("functools.partial(")
    assert len(one([[list(range(10_000))] * 1_000] * 1_000).value) <= LONGEST_VALUE


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
    assert number(Hostile())
    (built,) = builds(lambda: jax.jit(lambda x, how: x, static_argnums=1)(X, Hostile()))
    assert built.arguments.statics[0].value == "<Hostile>"


def test_a_slow_repr_of_a_library_is_asked_once(monkeypatch):
    slow = of_a_library("f'slow {next(asked)}'", asked=iter(range(9)))
    monkeypatch.setattr(structures, "SLOW_S", -1.0)
    assert one(slow).value == "slow 0"
    assert one(type(slow)()).value.startswith("<")
    assert repr(slow) == "slow 1"  # nobody asked meanwhile


def box(x):
    """Return an object of a class of its own."""

    class Box:
        pass

    jax.tree_util.register_pytree_node(Box, lambda own: ((own.x,), None), lambda _, x: Box())
    made = Box()
    made.x = x
    return made


def tree(value):
    return structure(jax.tree.structure(value))


def test_fixed_fields_have_names_and_no_repr_of_the_users_is_called():
    layer = Layer(X, Silent(3), 0.5)
    fields = ("rate", "0.5"), ("by", "Silent(width=3, inside=None)")
    node = (f"{__name__}.Layer", (None,), ("w",), fields, 1)
    inside = ("list", (node, ("None", (), (), (), 1)), (), (), 1)
    assert tree({"a": [layer, None]}) == ("dict", (inside,), ("'a'",), (), 1)
    boxes = [box(X), box(X)]
    kinds = [tree(each) for each in (*boxes, boxes[0])]
    assert [one.type.rpartition(".")[2] for one in kinds] == ["Box"] * 3
    assert [one.number for one in kinds] == [1, 2, 1]
    assert tree(boxes[0]).names == ("x",)
    ordered = collections.OrderedDict(a=X)
    assert tree(ordered)[:3] == ("collections.OrderedDict", (None,), ("'a'",))
    assert tree(Pair(X, X)) == (f"{__name__}.Pair", (None, None), ("width", "inside"), (), 1)
    assert tree(collections.defaultdict(int, b=X)).fields == (("default_factory", "<class 'int'>"),)
    jitted = jax.jit(lambda layer: layer.w * layer.rate)
    first, second = builds(lambda: [jitted(Layer(X, Silent(3), rate)) for rate in (0.5, 0.6)])
    assert [built.arguments.trees[0].tree.fields[0] for built in (first, second)] == [
        *(("rate", "0.5"), ("rate", "0.6"))
    ]


@dataclasses.dataclass(frozen=True)
class Solver:
    """Compared by its fields."""

    name: str
    options: Options


def registered(register):
    """Return an object of a dataclass with one array, `w`, and two fixed fields."""

    @dataclasses.dataclass(frozen=True)
    class Model:
        w: Any
        solver: Any
        steps: Any

    register(Model)
    return Model(X, Solver("CG", Options(4)), 3)


def by_fields(kind):
    data, meta = (
        [one for one in dataclasses.fields(kind) if (one.name == "w") == dynamic]
        for dynamic in (True, False)
    )

    def taken_apart(model):
        keyed = tuple((jax.tree_util.GetAttrKey(f.name), getattr(model, f.name)) for f in data)
        return keyed, tuple(getattr(model, f.name) for f in meta)

    jax.tree_util.register_pytree_with_keys(kind, taken_apart, lambda meta, data: None)


def by_one_expression(kind):
    jax.tree_util.register_pytree_node(
        kind, lambda own: ((own.w,), (own.solver, own.steps)), lambda meta, data: None
    )


def by_its_method(kind):
    kind.tree_flatten = lambda self: ((self.w,), {"solver": self.solver, "steps": self.steps})
    kind.tree_unflatten = classmethod(lambda kind, fixed, data: None)
    jax.tree_util.register_pytree_node_class(kind)


def by_jax(kind):
    jax.tree_util.register_dataclass(kind, ["w"], ["solver", "steps"])


@pytest.mark.parametrize("register", [by_fields, by_one_expression, by_its_method, by_jax])
def test_fixed_fields_of_a_librarys_class_have_names_and_their_own_fields(register):
    node = tree(registered(register))
    label = f"<{__name__}.{{}}>".format
    assert node.fields == (
        ("solver", label("Solver")),
        ("solver.name", "'CG'"),
        ("solver.options", label("Options")),
        ("solver.options.width", "4"),
        ("solver.options.act", "None"),
        ("steps", "3"),
    )
    assert node.names == (() if register is by_its_method else ("w",))


def test_what_reads_its_fields_in_another_order_gives_no_names():
    def fixed_first(model):
        fixed = (model.solver, model.steps)
        return (model.w,), fixed

    def register(kind):
        jax.tree_util.register_pytree_node(kind, fixed_first, lambda meta, data: None)

    assert {field.name for field in tree(registered(register)).fields} == {""}


def test_what_a_dataclass_keeps_out_of_its_repr_is_not_shown_and_told_apart():
    assert "s3cret" not in str(tree(Account("s3cret")))
    jitted = jax.jit(lambda x, account: x * 2, static_argnums=1)
    found = builds(lambda: [jitted(X, Account(token)) for token in ("s3cret", "another")])
    ((_, first), (_, second)) = (build.arguments.statics for build in found)
    assert first.name == "account.token"
    assert first.value == second.value == "<not shown>"
    assert first.object != second.object


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
    assert len(numbers._kept) == numbers._equal.cache_info().currsize == MOST_KEPT


def test_a_callable_object_a_bound_method_and_a_partial_are_found():
    class Model:
        def __call__(self, x):
            return x

        def step(self, x, y=0):
            return x

    given = (Model(), Model().step, functools.partial(Model().step, y=1))
    found = builds(lambda: [jax.jit(function)(X) for function in given])
    names = [built.function.qualname.rpartition("<locals>.")[2] for built in found]
    assert names == ["Model.__call__", "Model.step", "Model.step"]
    assert {built.function.file for built in found} == {__file__}
