"""Programs that a remedy is advised for, each beside the same program with the remedy followed.

What a profile must report of the first, and how many programs either builds, was written before
they were run. `careless`, where there is one, follows the remedy without the condition that it
names: its results are others, or it raises.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

Run = Callable[[], Sequence[Any]]
"""Returns what the program computes."""


class Pair(NamedTuple):
    """A program, and what becomes of it with a remedy."""

    name: str
    remedy: str
    """Its code, any of those between `|`."""
    cause: str
    """As in the table of causes, any of those between `|`; `eager` for JAX's own functions outside
    jit."""
    argument: str
    of: str
    """The function whose builds are counted, of the program or of JAX; empty: all programs that
    were compiled."""
    builds: tuple[int | None, int]
    """Of the program as it is, and with the remedy; None: more than with it."""
    make: Callable[[], Sequence[Run]]
    """Returns the program, the one that follows the remedy, and perhaps `careless`."""


ALL: list[Pair] = []


def followed(
    remedy: str, cause: str, argument: str = "", *, of: str = "", builds: tuple[int | None, int]
) -> Any:
    """Declare a function that returns the programs."""

    def declare(make: Callable[[], Sequence[Run]]) -> Callable[[], Sequence[Run]]:
        ALL.append(Pair(make.__name__, remedy, cause, argument, of, builds, make))
        return make

    return declare


ONES = np.ones((4, 4), np.float32)
X = np.linspace(0, 1, 16, dtype=np.float32)
ROWS = [np.random.default_rng(n).normal(size=16).astype(np.float32) for n in range(4)]


# Functions that are made anew.


@followed("jit once", "new function object", "scaled", of="scaled", builds=(4, 1))
def jitted_in_a_loop():
    def make():
        def scaled(x):
            return jnp.sin(x) * 2

        return jax.jit(scaled)

    def before():
        return [make()(row) for row in ROWS]

    def after():
        scaled = make()
        return [scaled(row) for row in ROWS]

    return before, after


@followed(
    "jit once and pass",
    "new function object|another program",
    "residual",
    of="residual",
    builds=(4, 1),
)
def closure_over_arrays():
    def before():
        def fit(data):
            @jax.jit
            def residual(w):
                return jnp.sum((w - data) ** 2)

            return residual(X)

        return [fit(jnp.asarray(row)) for row in ROWS]

    def after():
        @jax.jit
        def residual(w, data):
            return jnp.sum((w - data) ** 2)

        return [residual(X, jnp.asarray(row)) for row in ROWS]

    def careless():
        made = {}

        def fit(data):
            @jax.jit
            def residual(w):
                return jnp.sum((w - data) ** 2)

            return made.setdefault("once", residual)(X)

        return [fit(jnp.asarray(row)) for row in ROWS]

    return before, after, careless


@followed(
    "jit once and pass|pass what differs",
    "new function object|another program",
    "shifted",
    of="shifted",
    builds=(3, 1),
)
def closure_over_numbers():
    def before():
        def make(by):
            def shifted(x):
                return jnp.cos(x) + by

            return jax.jit(shifted)

        return [make(by)(X) for by in (0.5, 1.5, 2.5)]

    def after():
        @jax.jit
        def shifted(x, by):
            return jnp.cos(x) + by

        return [shifted(X, by) for by in (0.5, 1.5, 2.5)]

    return before, after


def raised_to(x, power):
    return jnp.tanh(x) ** power


@followed("partial once", "new function object", "raised_to", of="raised_to", builds=(3, 1))
def partial_in_a_loop():
    def before():
        return [jax.jit(functools.partial(raised_to, power=2))(row) for row in ROWS[:3]]

    def after():
        once = jax.jit(functools.partial(raised_to, power=2))
        return [once(row) for row in ROWS[:3]]

    return before, after


@followed(
    "pass what it binds",
    "new function object|another program",
    "raised_to",
    of="raised_to",
    builds=(3, 1),
)
def partial_that_binds_an_array():
    def before():
        return [jax.jit(functools.partial(raised_to, power=row))(np.abs(X)) for row in ROWS[:3]]

    def after():
        once = jax.jit(raised_to)
        return [once(np.abs(X), row) for row in ROWS[:3]]

    def careless():
        once = jax.jit(functools.partial(raised_to, power=ROWS[0]))
        return [once(np.abs(X)) for _ in ROWS[:3]]

    return before, after, careless


class Amplifier:
    """An object with a number that changes."""

    def __init__(self, gain):
        self.gain = gain

    def amplified(self, x):
        return jnp.sinh(x) * self.gain


def amplified(gain, x):
    return jnp.sinh(x) * gain


@followed("method", "new function object", "amplified", of="amplified", builds=(3, 1))
def method_of_one_object():
    def before():
        one = Amplifier(2.0)
        return [jax.jit(one.amplified)(row) for row in ROWS[:3]]

    def after():
        one, once = Amplifier(2.0), jax.jit(Amplifier.amplified, static_argnums=0)
        return [once(one, row) for row in ROWS[:3]]

    return before, after


@followed(
    "method and pass|pass what differs",
    "new function object|another program",
    "amplified",
    of="amplified",
    builds=(3, 1),
)
def method_of_an_object_that_changes():
    def results(call):
        one, made = Amplifier(1.0), []
        for gain in (1.0, 2.0, 3.0):
            one.gain = gain
            made.append(call(one, X))
        return made

    def before():
        return results(lambda one, x: jax.jit(one.amplified)(x))

    def after():
        once = jax.jit(amplified)
        return results(lambda one, x: once(one.gain, x))

    def careless():
        return results(jax.jit(Amplifier.amplified, static_argnums=0))

    return before, after, careless


@followed("method and pass", "new function object", "amplified", of="amplified", builds=(3, 1))
def method_of_objects_over_arrays():
    def results(call):
        return [call(Amplifier(jnp.asarray(row)), X) for row in ROWS[:3]]

    def before():
        return results(lambda one, x: jax.jit(one.amplified)(x))

    def after():
        once = jax.jit(amplified)
        return results(lambda one, x: once(one.gain, x))

    def careless():
        first, once = (
            Amplifier(jnp.asarray(ROWS[0])),
            jax.jit(Amplifier.amplified, static_argnums=0),
        )
        return results(lambda one, x: once(first, x))

    return before, after, careless


@followed("define once and pass", "new function object", "traced", of="traced", builds=(3, 1))
def only_traced_for_its_shape():
    def make():
        def traced(x):
            return jnp.outer(x, x)

        return traced

    def before():
        return [np.ones(jax.eval_shape(make(), row).shape) for row in ROWS[:3]]

    def after():
        traced = make()
        return [np.ones(jax.eval_shape(traced, row).shape) for row in ROWS[:3]]

    return before, after


# Static arguments.


def repeated(x, steps):
    return jax.lax.fori_loop(0, steps, lambda _, x: jnp.sin(x) + 0.1, x)


@followed("dynamic unless it sizes", "static value", "steps", of="repeated", builds=(4, 1))
def static_count():
    def before():
        jitted = jax.jit(repeated, static_argnames="steps")
        return [jitted(X, steps=steps) for steps in (2, 3, 5, 8)]

    def after():
        jitted = jax.jit(repeated)
        return [jitted(X, steps=steps) for steps in (2, 3, 5, 8)]

    return before, after


def cubed(x, n):
    return x + n * n * n / 1000


@followed("dynamic unless it sizes", "static value", "n", of="cubed", builds=(3, 1))
def static_whole_number():
    def before():
        jitted = jax.jit(cubed, static_argnames="n")
        return [jitted(X, n=n) for n in (11, 1200, 2000)]

    def after():
        jitted = jax.jit(cubed)
        return [jitted(X, n=float(n)) for n in (11, 1200, 2000)]

    def careless():
        jitted = jax.jit(cubed)
        return [jitted(X, n=n) for n in (11, 1200, 2000)]

    return before, after, careless


def damped(x, rate):
    return jnp.exp(-rate * x)


@followed("dynamic", "static value", "rate", of="damped", builds=(3, 1))
def static_rate():
    def before():
        jitted = jax.jit(damped, static_argnames="rate")
        return [jitted(X, rate=rate) for rate in (0.25, 0.5, 0.75)]

    def after():
        jitted = jax.jit(damped)
        return [jitted(X, rate=rate) for rate in (0.25, 0.5, 0.75)]

    return before, after


def noisy(x, training):
    return jnp.where(training, x * 0.5, x)


@followed("dynamic bool", "static value", "training", of="noisy", builds=(2, 1))
def static_flag():
    def before():
        jitted = jax.jit(noisy, static_argnames="training")
        return [jitted(X, training=training) for training in (True, False)]

    def after():
        jitted = jax.jit(noisy)
        return [jitted(X, training=training) for training in (True, False)]

    return before, after


def applied(x, function):
    return function(x) + 1


@followed("static function once", "static value", "function", of="applied", builds=(3, 1))
def static_function_made_anew():
    def make():
        return lambda x: jnp.tan(x)

    def before():
        jitted = jax.jit(applied, static_argnames="function")
        return [jitted(row, function=make()) for row in ROWS[:3]]

    def after():
        jitted, function = jax.jit(applied, static_argnames="function"), make()
        return [jitted(row, function=function) for row in ROWS[:3]]

    return before, after


@followed(
    "static function once|pass what differs",
    "static value|another program",
    "function",
    builds=(3, 1),
)
def static_function_over_arrays():
    def before():
        jitted = jax.jit(applied, static_argnames="function")
        return [jitted(X, function=lambda x, row=row: x * row) for row in ROWS[:3]]

    def after():
        jitted = jax.jit(lambda x, row: applied(x, lambda x: x * row))
        return [jitted(X, row) for row in ROWS[:3]]

    def careless():
        jitted = jax.jit(applied, static_argnames="function")
        first = ROWS[0]
        function = lambda x: x * first  # noqa: E731
        return [jitted(X, function=function) for _ in ROWS[:3]]

    return before, after, careless


class Settings:
    """What is equal to nothing else."""

    def __init__(self, scale):
        self.scale = scale


@dataclasses.dataclass(frozen=True)
class FrozenSettings:
    """What is equal to another of the same content."""

    scale: float


def configured(x, settings):
    return jnp.arctan(x) * settings.scale


@followed("equality", "static value", "settings", of="configured", builds=(3, 1))
def static_object_without_equality():
    def before():
        jitted = jax.jit(configured, static_argnames="settings")
        return [jitted(row, settings=Settings(2.0)) for row in ROWS[:3]]

    def after():
        jitted = jax.jit(configured, static_argnames="settings")
        return [jitted(row, settings=FrozenSettings(2.0)) for row in ROWS[:3]]

    return before, after


@followed(
    "pass what differs", "static value|another program", "settings", of="configured", builds=(3, 3)
)
def static_object_whose_content_differs():
    def before():
        jitted = jax.jit(configured, static_argnames="settings")
        return [jitted(X, settings=Settings(scale)) for scale in (1.0, 2.0, 3.0)]

    def after():
        jitted = jax.jit(configured, static_argnames="settings")
        return [jitted(X, settings=FrozenSettings(scale)) for scale in (1.0, 2.0, 3.0)]

    def careless():
        jitted, settings, made = jax.jit(configured, static_argnames="settings"), Settings(1.0), []
        for scale in (1.0, 2.0, 3.0):
            settings.scale = scale
            made.append(jitted(X, settings=settings))
        return made

    return before, after, careless


@followed("array or never", "static value", "by", of="divided", builds=(2, 1))
def static_or_an_array():
    import equinox

    def results(*given):
        @equinox.filter_jit
        def divided(x, by):
            return x / by

        return [divided(jnp.asarray(X), by) for by in given]

    four = jnp.float32(4)
    return lambda: results(2.0, four), lambda: results(jnp.float32(2), four)


@followed("filter_jit array", "static value", "rate", of="damped", builds=(3, 1))
def number_given_to_filter_jit():
    import equinox

    def results(make):
        jitted = equinox.filter_jit(damped)
        return [jitted(jnp.asarray(X), make(rate)) for rate in (0.25, 0.5, 0.75)]

    return lambda: results(float), lambda: results(jnp.asarray)


@followed("jit once|filter_jit once", "new function object", "damped", of="damped", builds=(3, 1))
def filter_jit_in_a_loop():
    import equinox

    def make():
        def damped(x):
            return jnp.exp(-x)

        return equinox.filter_jit(damped)

    def before():
        return [make()(jnp.asarray(row)) for row in ROWS[:3]]

    def after():
        once = make()
        return [once(jnp.asarray(row)) for row in ROWS[:3]]

    return before, after


@followed("filter_jit array unless it sizes", "static value", "n", of="scaled_up", builds=(3, 1))
def whole_number_given_to_filter_jit():
    import equinox

    def scaled_up(x, n):
        return jnp.exp(x) * n

    def results(make):
        jitted = equinox.filter_jit(scaled_up)
        return [jitted(jnp.asarray(X), make(n)) for n in (2, 3, 5)]

    return lambda: results(int), lambda: results(jnp.asarray)


@followed("static object once", "static value", "function", of="applied", builds=(3, 1))
def static_jitted_function_made_anew():
    def tangent(x):
        return jnp.tan(x)

    def before():
        jitted = jax.jit(applied, static_argnames="function")
        return [jitted(row, function=jax.jit(tangent)) for row in ROWS[:3]]

    def after():
        jitted, function = jax.jit(applied, static_argnames="function"), jax.jit(tangent)
        return [jitted(row, function=function) for row in ROWS[:3]]

    return before, after


@followed("library object", "new function object", "update_fn", of="update_fn", builds=(3, 1))
def optimizer_of_a_library_made_anew():
    import optax

    def results(optimizers):
        made, parameters = [], X
        for optimizer in optimizers:
            updates, _ = jax.jit(optimizer.update)(parameters, optimizer.init(parameters))
            parameters = parameters + np.asarray(updates)
            made.append(parameters)
        return made

    once = optax.sgd(0.1)
    return lambda: results(optax.sgd(0.1) for _ in range(3)), lambda: results([once] * 3)


def scaled_by(x, n=2):
    return jnp.log1p(x) * n


@followed("by keyword", "pytree", "n", of="scaled_by", builds=(3, 1))
def static_given_in_three_ways():
    def before():
        jitted = jax.jit(scaled_by, static_argnames="n")
        return [jitted(X), jitted(X, n=2), jitted(X, 2)]

    def after():
        jitted = jax.jit(scaled_by, static_argnames="n")
        return [jitted(X, n=2) for _ in range(3)]

    return before, after


# Structures.


@followed("one way", "pytree", "by", of="plus", builds=(2, 1))
def keyword_for_position():
    def plus(x, by):
        return x + by

    def before():
        jitted = jax.jit(plus)
        return [jitted(X, X), jitted(X, by=X)]

    def after():
        jitted = jax.jit(plus)
        return [jitted(X, X) for _ in range(2)]

    return before, after


@followed("one kind of dictionary", "pytree", "tree", of="named", builds=(4, 1))
def dictionaries_of_four_kinds():
    def named(tree):
        return tree["a"] * 2 + tree["b"]

    items = {"a": X, "b": X + 1}
    kinds = [
        dict,
        collections.OrderedDict,
        functools.partial(collections.defaultdict, int),
        functools.partial(collections.defaultdict, float),
    ]

    def before():
        jitted = jax.jit(named)
        return [jitted(kind(items)) for kind in kinds]

    def after():
        jitted = jax.jit(named)
        return [jitted(dict(kind(items))) for kind in kinds]

    return before, after


@followed("one kind of dictionary", "pytree", "tree", of="in_order", builds=(2, 1))
def dictionaries_whose_order_is_used():
    def in_order(tree):
        return jnp.stack(list(tree.values()))

    ordered = collections.OrderedDict(b=X + 1, a=X)

    def before():
        jitted = jax.jit(in_order)
        return [jitted(ordered), np.asarray(jitted(dict(ordered)))[::-1]]

    def after():
        jitted = jax.jit(in_order)
        return [jitted(ordered) for _ in range(2)]

    def careless():
        jitted = jax.jit(in_order)
        return [jitted(dict(ordered)) for _ in range(2)]

    return before, after, careless


def point_class():
    return collections.namedtuple("Point", "x y")


@followed("class once", "pytree", "point", of="added", builds=(3, 1))
def class_made_anew():
    def added(point):
        return point.x + point.y

    def before():
        jitted = jax.jit(added)
        return [jitted(point_class()(row, X)) for row in ROWS[:3]]

    def after():
        jitted, once = jax.jit(added), point_class()
        return [jitted(once(row, X)) for row in ROWS[:3]]

    return before, after


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["activation"])
@dataclasses.dataclass
class Layer:
    """Weights, and a function that is no data."""

    w: Any
    activation: Callable[[Any], Any]


def forward(layer, x):
    return layer.activation(layer.w * x)


@followed("held object once", "pytree", "layer", of="forward", builds=(3, 1))
def structure_that_holds_a_function():
    def before():
        jitted = jax.jit(forward)
        return [jitted(Layer(row, lambda x: jnp.maximum(x, 0)), X) for row in ROWS[:3]]

    def after():
        jitted, activation = jax.jit(forward), lambda x: jnp.maximum(x, 0)
        return [jitted(Layer(row, activation), X) for row in ROWS[:3]]

    return before, after


@followed("pass what it holds", "pytree", "layer", builds=(3, 1))
def structure_whose_function_closes_over_an_array():
    def before():
        jitted = jax.jit(forward)
        return [jitted(Layer(X, lambda x, row=row: x + row), X) for row in ROWS[:3]]

    def after():
        def with_data(w, row, x):
            return forward(Layer(w, lambda x: x + row), x)

        jitted = jax.jit(with_data)
        return [jitted(X, row, X) for row in ROWS[:3]]

    def careless():
        jitted, activation = jax.jit(forward), lambda x: x + ROWS[0]
        return [jitted(Layer(X, activation), X) for _ in ROWS[:3]]

    return before, after, careless


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["rate"])
@dataclasses.dataclass
class Decay:
    """Weights, and a rate that is no data."""

    w: Any
    rate: float


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w", "rate"], meta_fields=[])
@dataclasses.dataclass
class DecayOfData:
    """Weights, and a rate that is data."""

    w: Any
    rate: float


def decayed(decay):
    return decay.w * jnp.exp(-decay.rate)


@followed("field as data", "pytree", "decay", of="decayed", builds=(3, 1))
def fixed_field():
    def before():
        jitted = jax.jit(decayed)
        return [jitted(Decay(X, rate)) for rate in (0.25, 0.5, 0.75)]

    def after():
        jitted = jax.jit(decayed)
        return [jitted(DecayOfData(X, np.float32(rate))) for rate in (0.25, 0.5, 0.75)]

    return before, after


@followed("same structure", "pytree", "mask", of="masked", builds=(2, 1))
def none_for_an_array():
    def masked(x, mask):
        return x if mask is None else x * mask

    def before():
        jitted = jax.jit(masked)
        return [jitted(X, None), jitted(X, (X > 0.5).astype(np.float32))]

    def after():
        jitted = jax.jit(masked)
        return [jitted(X, np.ones_like(X)), jitted(X, (X > 0.5).astype(np.float32))]

    return before, after


# Types of arrays.


@followed("one dtype", "dtype", "x", of="halved", builds=(2, 1))
def whole_numbers_for_others():
    def halved(x):
        return x / 2

    whole = np.arange(16, dtype=np.int32)

    def before():
        jitted = jax.jit(halved)
        return [jitted(X), jitted(whole)]

    def after():
        jitted = jax.jit(halved)
        return [jitted(X), jitted(whole.astype("float32"))]

    return before, after


@followed("one dtype", "dtype", "x", of="halved", builds=(2, 1))
def whole_numbers_come_first():
    def halved(x):
        return x / 2

    whole = np.arange(16, dtype=np.int32)

    def before():
        jitted = jax.jit(halved)
        return [jitted(whole), jitted(X)]

    def after():
        jitted = jax.jit(halved)
        return [jitted(whole.astype("float32")), jitted(X)]

    def careless():
        jitted = jax.jit(halved)
        return [jitted(whole), jitted(X.astype("int32"))]

    return before, after, careless


@followed("one kind of key", "dtype", "key", of="drawn", builds=(2, 1))
def keys_of_two_kinds():
    def drawn(key):
        return jax.random.normal(key, (3,))

    def before():
        jitted = jax.jit(drawn)
        return [jitted(jax.random.key(0)), jitted(jax.random.PRNGKey(0))]

    def after():
        jitted = jax.jit(drawn)
        return [jitted(jax.random.key(0)) for _ in range(2)]

    return before, after


@followed("references of one dtype", "dtype", "ref", of="read", builds=(2, 1))
def references_to_two_dtypes():
    def read(ref):
        return ref[...] / 2

    whole = np.arange(16, dtype=np.int32)

    def results(*arrays):
        jitted = jax.jit(read)
        return [jitted(jax.new_ref(jnp.asarray(array))) for array in arrays]

    return lambda: results(X, whole), lambda: results(X, whole.astype(np.float32))


@followed("always an array", "weak type", "time", of="stepped", builds=(2, 1))
def python_number_first():
    def stepped(x, time):
        return x + time, time + np.float32(0.5)

    def results(time):
        jitted, made = jax.jit(stepped), []
        for _ in range(3):
            x, time = jitted(X, time)
            made += [x, time]
        return made

    return lambda: results(0.0), lambda: results(jnp.float32(0.0))


@followed("always an array", "weak type", "by", of="times", builds=(2, 1))
def python_number_beside_half_precision():
    def times(x, by):
        return x * by

    half = X.astype(jnp.bfloat16)

    def results(*given):
        jitted = jax.jit(times)
        return [jitted(half, by) for by in given]

    return (
        lambda: results(2.0, jnp.float32(2.0)),
        lambda: [results(jnp.bfloat16(2.0))[0], times(half, jnp.float32(2.0))],
        lambda: results(jnp.float32(2.0), jnp.float32(2.0)),
    )


@followed("explicit dtype", "weak type", "total", of="summed", builds=(2, 1))
def weakly_typed_zeros():
    def summed(total, x):
        return total + x

    def results(total):
        jitted, made = jax.jit(summed), []
        for row in ROWS[:3]:
            total = jitted(total, row)
            made.append(total)
        return made

    return (
        lambda: results(jnp.zeros_like(jnp.full(16, 1.0))),
        lambda: results(jnp.zeros_like(jnp.full(16, 1.0), dtype=jnp.float32)),
    )


# Shapes.


LENGTHS = (5, 6, 7, 8)


@followed("pad", "shape", "x", of="squared", builds=(4, 1))
def lengths_padded_and_cut():
    def squared(x):
        return x * x

    def before():
        jitted = jax.jit(squared)
        return [jitted(X[:n]) for n in LENGTHS]

    def after():
        jitted = jax.jit(squared)
        return [np.asarray(jitted(np.pad(X[:n], (0, 8 - n))))[:n] for n in LENGTHS]

    return before, after


@followed("pad", "shape", "x", of="average", builds=(4, 1))
def lengths_whose_mean_is_taken():
    def average(x):
        return jnp.mean(x)

    def before():
        jitted = jax.jit(average)
        return [jitted(X[:n]) for n in LENGTHS]

    def after():
        def average(x, there):
            return jnp.mean(x, where=there)

        jitted = jax.jit(average)
        return [jitted(np.pad(X[:n], (0, 8 - n)), np.arange(8) < n) for n in LENGTHS]

    def careless():
        jitted = jax.jit(average)
        return [jitted(np.pad(X[:n], (0, 8 - n))) for n in LENGTHS]

    return before, after, careless


@followed("leave out", "unused argument", "unused", of="first_alone", builds=(3, 1))
def unused_argument():
    def first_alone(x, unused):
        return jnp.sin(x) * 3

    def before():
        jitted = jax.jit(first_alone)
        return [jitted(X, np.ones(n)) for n in (3, 5, 7)]

    def after():
        jitted = jax.jit(first_alone)
        return [jitted(X, None) for _ in range(3)]

    return before, after


@followed("pad", "shape", "like", of="per_row", builds=(3, 1))
def argument_whose_shape_is_used():
    def per_row(x, like):
        return x.sum() / like.shape[0]

    def before():
        jitted = jax.jit(per_row)
        return [jitted(X, np.ones(n)) for n in (3, 5, 7)]

    def after():
        def per_row(x, rows):
            return x.sum() / rows

        jitted = jax.jit(per_row)
        return [jitted(X, float(n)) for n in (3, 5, 7)]

    def careless():
        jitted = jax.jit(per_row)
        return [jitted(X, None) for _ in (3, 5, 7)]

    return before, after, careless


# Where arrays lie, and under what.


def mesh():
    return jax.make_mesh((2,), ("i",), axis_types=(AxisType.Auto,))


def doubled(x):
    return jnp.cosh(x) * 2


@followed("commit", "committed", "x", of="doubled", builds=(2, 1))
def committed_later():
    def results(*places):
        jitted = jax.jit(doubled)
        return [jitted(jax.device_put(X, place)) for place in places]

    device = jax.devices()[0]
    return lambda: results(None, device), lambda: results(device, device)


@followed("one device", "device", "x", of="doubled", builds=(2, 1))
def two_devices():
    def results(*numbers):
        jitted = jax.jit(doubled)
        return [jitted(jax.device_put(X, jax.devices()[number])) for number in numbers]

    return lambda: results(0, 1), lambda: results(0, 0)


@followed("one sharding", "sharding", "x", of="doubled", builds=(2, 1))
def two_shardings():
    def results(*specs):
        jitted, one = jax.jit(doubled), mesh()
        return [jitted(jax.device_put(X, NamedSharding(one, spec))) for spec in specs]

    return lambda: results(P("i"), P()), lambda: results(P("i"), P("i"))


@followed("one layout", "layout", "x", of="doubled", builds=(2, 1))
def two_layouts():
    place = SingleDeviceSharding(jax.devices()[0])

    def results(*layouts):
        jitted = jax.jit(doubled)
        return [jitted(jax.device_put(ONES * 3, layout)) for layout in layouts]

    return (
        lambda: results(place, Format(Layout((1, 0)), place)),
        lambda: results(place, place),
    )


@followed(
    "one setting", "configuration", "jax_default_matmul_precision", of="product", builds=(2, 1)
)
def precision_of_some_calls():
    def product(x):
        return x @ x

    def results(*precisions):
        jitted, made = jax.jit(product), []
        for precision in precisions:
            with jax.default_matmul_precision(precision):
                made.append(jitted(ONES))
        return made

    return lambda: results("default", "highest"), lambda: results("highest", "highest")


@followed("one setting", "configuration", "jax_enable_x64", of="third", builds=(2, 1))
def precision_of_numbers():
    def third(x):
        return x.astype(float) / 3

    def results(*wide):
        jitted, made = jax.jit(third), []
        for one in wide:
            with jax.enable_x64(one):
                made.append(jitted(X))
        return made

    return (
        lambda: results(False, True),
        lambda: [results(False)[0], (X.astype(np.float64) / 3)],
        lambda: results(False, False),
    )


@followed("one set of options", "donation", "x", of="doubled", builds=(2, 1))
def donated_at_times():
    def results(*options):
        return [jax.jit(doubled, **one)(jax.device_put(X)) for one in options]

    return lambda: results({}, {"donate_argnums": 0}), lambda: results({}, {})


@followed("one set of options", "jit options", "out_shardings", of="doubled", builds=(2, 1))
def two_sets_of_options():
    def results(*options):
        return [jax.jit(doubled, **one)(jax.device_put(X)) for one in options]

    place = {"out_shardings": SingleDeviceSharding(jax.devices()[0])}
    return lambda: results({}, place), lambda: results(place, place)


@followed("ahead of time", "ahead of time", "compiler_options", of="doubled", builds=(2, 1))
def compiled_ahead_of_time_again():
    options = {"xla_dump_max_hlo_modules": 9}

    def before():
        lowered = jax.jit(doubled).lower(X)
        return [lowered.compile()(X), lowered.compile(options)(X)]

    def after():
        compiled = jax.jit(doubled).lower(X).compile(options)
        return [compiled(X) for _ in range(2)]

    return before, after


@followed("clear less", "cache cleared", "jax.clear_caches()", of="doubled", builds=(3, 1))
def caches_cleared():
    def results(clear):
        jitted, made = jax.jit(doubled), []
        for row in ROWS[:3]:
            made.append(jitted(row))
            clear()
        return made

    return lambda: results(jax.clear_caches), lambda: results(lambda: None)


@followed("fix error", "failed before", "", of="strict", builds=(3, 1))
def raised_again():
    def make(limit):
        def strict(x):
            if x.ndim > limit:
                raise ValueError
            return x.sum()

        return jax.jit(strict)

    def before():
        strict = make(1)
        for _ in range(2):
            with contextlib.suppress(ValueError):
                strict(ONES)
        return [strict(X)]

    def after():
        return [make(2)(X)]

    return before, after


@followed("jit differentiated", "first", "", of="curved", builds=(2, 1))
def differentiated_outside_jit():
    def curved(x):
        return jnp.sum(jnp.sin(x) ** 2)

    def before():
        jitted = jax.jit(curved)
        return [jax.grad(jitted)(row) for row in ROWS[:2]]

    def after():
        jitted = jax.jit(jax.grad(curved))
        return [jitted(row) for row in ROWS[:2]]

    return before, after


# JAX's own functions outside jit.


def simulated(x):
    for _ in range(4):
        x = jnp.sin(x) + jnp.cos(x) * 0.5 - jnp.tanh(x)
    return jnp.sqrt(jnp.abs(x)) + jnp.exp(-x)


@followed("jit functions", "eager", "simulated", builds=(10, 1))
def a_function_outside_jit():
    return lambda: [simulated(X)], lambda: [jax.jit(simulated)(X)]


HISTORY: list[int] = []


def counted(x):
    HISTORY.append(1)
    return (jnp.sin(x) + jnp.cos(x) - jnp.tanh(x)) * jnp.exp(x) * len(HISTORY)


@followed("jit functions", "eager", "counted", builds=(8, 1))
def a_function_that_counts_its_calls():
    def results(function):
        HISTORY.clear()
        return [*(function(row) for row in ROWS[:3]), np.asarray(len(HISTORY))]

    def after():
        def plain(x, count):
            return (jnp.sin(x) + jnp.cos(x) - jnp.tanh(x)) * jnp.exp(x) * count

        jitted, made = jax.jit(plain), []
        for number, row in enumerate(ROWS[:3], 1):
            made.append(jitted(row, number))
        return [*made, np.asarray(len(made))]

    return lambda: results(counted), after, lambda: results(jax.jit(counted))


@followed("few sizes", "eager", "", builds=(6, 1))
def sizes_outside_jit():
    def before():
        return [jnp.sin(X[:n]) for n in range(3, 9)]

    def after():
        return [np.asarray(jnp.sin(np.pad(X[:n], (0, 8 - n))))[:n] for n in range(3, 9)]

    return before, after


VALUES = [np.arange(12, dtype=np.int32) % n for n in range(3, 9)]


@followed("size", "eager", "", builds=(None, 2))
def distinct_values_outside_jit():
    def before():
        return [jnp.unique(jnp.asarray(one)).sum() for one in VALUES]

    def after():
        @jax.jit
        def distinct(x):
            return jnp.unique(x, size=8, fill_value=0).sum()

        return [distinct(jnp.asarray(one)) for one in VALUES]

    def careless():
        shifted = [one + 1 for one in VALUES]
        exact = [np.unique(one).sum() for one in shifted]
        filled = [jnp.unique(jnp.asarray(one), size=8).sum() for one in shifted]
        return [np.unique(a).sum() - b + c for a, b, c in zip(VALUES, exact, filled, strict=True)]

    return before, after, careless


@followed("where", "eager", "", builds=(None, 1))
def masked_outside_jit():
    array = np.arange(12, dtype=np.float32)

    def before():
        x = jnp.asarray(array)
        return [x[x > n].sum() for n in range(3, 9)]

    def after():
        @jax.jit
        def above(x, n):
            return jnp.where(x > n, x, 0).sum()

        return [above(array, n) for n in range(3, 9)]

    return before, after


@followed("where", "eager", "", builds=(None, 1))
def mean_of_what_a_mask_selects():
    array = np.arange(12, dtype=np.float32)

    def before():
        x = jnp.asarray(array)
        return [x[x > n].mean() for n in range(3, 9)]

    def after():
        @jax.jit
        def above(x, n):
            return jnp.mean(x, where=x > n)

        return [above(array, n) for n in range(3, 9)]

    def careless():
        @jax.jit
        def above(x, n):
            return jnp.where(x > n, x, 0).mean()

        return [above(array, n) for n in range(3, 9)]

    return before, after, careless


@followed("jit around loop", "eager", "", of="scan", builds=(4, 0))
def loop_outside_jit():
    def total(row):
        return jax.lax.scan(lambda carry, x: (carry + x, None), jnp.float32(0), row)[0]

    def before():
        return [total(row) for row in ROWS]

    def after():
        jitted = jax.jit(total)
        return [jitted(row) for row in ROWS]

    return before, after


WEIGHT = {"now": np.float32(1)}


@followed("jit around loop", "eager", "", of="scan", builds=(3, 1))
def loop_that_reads_what_changes():
    def body(carry, x):
        return carry + x * WEIGHT["now"], None

    def results(make):
        made = []
        for weight in (1, 2, 3):
            WEIGHT["now"] = np.float32(weight)
            made.append(jax.lax.scan(make(), jnp.float32(0), X)[0])
        return made

    def before():
        return results(lambda: lambda carry, x: body(carry, x))

    def after():
        def weighted(carry, x):
            total, weight = carry
            return (total + x * weight, weight), None

        return [
            jax.lax.scan(weighted, (np.float32(0), np.float32(weight)), X)[0][0]
            for weight in (1, 2, 3)
        ]

    return before, after, lambda: results(lambda: body)


@followed("numpy to iterate", "eager", "unstack", of="unstack", builds=(1, 0))
def loop_of_python_over_an_array():
    def before():
        return [jnp.asarray([float(x) * 2 for x in jnp.asarray(X)])]

    def after():
        return [jnp.asarray([float(x) * 2 for x in np.asarray(jnp.asarray(X))])]

    return before, after


@followed("jit shard_map", "eager", "", builds=(15, 1))
def shard_map_outside_jit():
    def make():
        def wave(x):
            return jnp.sin(x) * 2

        return jax.shard_map(wave, mesh=mesh(), in_specs=P("i"), out_specs=P("i"))

    def before():
        return [make()(row) for row in ROWS[:3]]

    def after():
        jitted = jax.jit(make())
        return [jitted(row) for row in ROWS[:3]]

    return before, after
