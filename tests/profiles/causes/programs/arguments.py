"""What is passed: shapes, dtypes, structures, static values; and what must not matter."""

from __future__ import annotations

import contextlib
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from tests.profiles.causes.programs import builds

ONES = np.ones((4, 3), np.float32)


def called(function, *calls, **options):
    """Jit a function, and call it with each of these arguments."""
    jitted = jax.jit(function, **options)
    for given in calls:
        jitted(*given)


def doubled(*values):
    def double(x):
        return x * 2

    called(double, *((value,) for value in values))


def scaled(x, by=2.0):
    return x * by


def power(x, n):
    return x ** int(n)


@dataclasses.dataclass(frozen=True)
class EqualOptions:
    scale: float = 2.0


def configured(options, *arrays):
    def apply(x, options):
        return x * options.scale

    called(apply, *((x, options()) for x in arrays), static_argnums=1)


@builds("double: first", "double: shape x")
def shape():
    doubled(ONES, ONES[:2], ONES)


@builds("double: first", "double: shape x")
def rank():
    doubled(ONES, ONES[0])


@builds("double: first", "double: shape x", "double: shape x", "double: shape x")
def many_shapes():
    doubled(*[np.ones(n) for n in range(1, 5)] * 2)


@builds("double: first", "double: dtype x")
def dtype():
    doubled(ONES, ONES.astype(np.int32))


@builds("double: first", "double: dtype x")
def int_for_float():
    doubled(1.5, 2)


@builds("double: first", "double: weak type x")
def weak_type():
    doubled(1.5, np.float32(1.5))


@builds("double: first", "double: shape x", "double: weak type x")
def weak_type_among_shapes():
    doubled(1.5, ONES, np.float32(1.5))


@builds("step: first", "step: shape batch['x']")
def shape_in_a_dict():
    def step(params, batch):
        return params["w"] * batch["x"].sum()

    called(step, ({"w": ONES}, {"x": ONES}), ({"w": ONES}, {"x": ONES[:2]}))


@builds("scaled: first", "scaled: dtype x")
def two_differences_at_once():
    called(scaled, (ONES, 2.0), (ONES.astype(np.int32), np.float32(2)))


@builds("total: first", "total: pytree params")
def keys_of_a_dict():
    def total(params):
        return sum(params.values())

    called(total, ({"a": ONES},), ({"a": ONES, "b": ONES},))


@builds("total: first", "total: pytree xs")
def list_for_tuple():
    def total(xs):
        return xs[0] + xs[1]

    called(total, ([ONES, ONES],), ((ONES, ONES),))


@builds("masked: first", "masked: pytree mask")
def none_for_an_array():
    def masked(x, mask):
        return x if mask is None else x * mask

    called(masked, (ONES, None), (ONES, ONES))


@builds("scaled: first", "scaled: pytree by")
def keyword_for_position():
    scale = jax.jit(scaled)
    scale(ONES, ONES)
    scale(ONES, by=ONES)


@builds("total: first", "total: pytree xs[1]")
def number_of_arguments():
    def total(*xs):
        return sum(xs)

    called(total, (ONES,), (ONES, ONES))


@builds("scaled: first", "scaled: pytree by")
def default_left_out():
    called(scaled, (ONES,), (ONES, 2.0))


@builds("power: first", "power: static value n", "power: static value n")
def static_number():
    called(power, *((ONES, n) for n in (2, 3, 2, 4)), static_argnames="n")


@builds("power: first", "power: static value n", "power: static value n", "power: static value n")
def static_types():
    called(power, *((ONES, n) for n in (1, True, np.int64(1), 1.0)), static_argnums=1)


@builds("apply: first", "apply: static value mode")
def static_string():
    @functools.partial(jax.jit, static_argnames="mode")
    def apply(x, *, mode):
        return x if mode == "train" else -x

    for mode in ("train", "eval", "train"):
        apply(ONES, mode=mode)


@builds("reshaped: first", "reshaped: static value shape")
def static_tuple():
    def reshaped(x, shape):
        return x.reshape(shape)

    called(reshaped, *((ONES, shape) for shape in ((3, 4), (2, 6), (3, 4))), static_argnums=1)


@builds("apply: first", "apply: static value options")
def static_object_without_equality():
    class Options:
        scale = 2.0

    configured(Options, ONES, ONES)


@builds("apply: first")
def static_objects_that_are_equal():
    configured(EqualOptions, ONES, ONES)


@builds("apply: first", "apply: static value function")
def static_lambda():
    def apply(function, x):
        return function(x)

    def made():
        return lambda x: x + 1

    called(apply, (made(), ONES), (made(), ONES), static_argnums=0)


@builds("apply: first", "apply: shape x")
def equal_static_objects_and_another_shape():
    configured(EqualOptions, ONES, ONES[0])


@builds("power: first", "power: pytree n")
def static_by_keyword():
    raised = jax.jit(power, static_argnames="n")
    raised(ONES, 2)
    raised(ONES, n=2)


@builds()
def unhashable_static():
    @functools.partial(jax.jit, static_argnums=1)
    def power(x, n):
        return x * n[0]

    try:
        power(ONES, [2])
    except ValueError:
        return
    raise AssertionError("JAX took a list as a static argument")


@builds("draw: first", "draw: dtype key")
def key_types():
    def draw(key):
        return jax.random.normal(key, (3,))

    called(draw, (jax.random.PRNGKey(0),), (jax.random.key(0),))


@builds("double: first")
def what_does_not_matter():
    doubled(ONES, ONES + 1, jnp.asarray(ONES), ONES[::-1])


@builds("double: first")
def other_numbers():
    doubled(1.0, 2.5, float("inf"))


@builds("apply: first", "apply: static value model.width")
def static_models_of_a_class():
    @dataclasses.dataclass(frozen=True)
    class Model:
        width: int

        def __call__(self, x):
            return x * self.width

    def apply(model, x):
        return model(x)

    called(apply, *((Model(width), ONES) for width in (1, 2, 1)), static_argnums=0)


@builds("apply: first", "apply: static value config.inner.seed")
def one_field_of_a_static_configuration():
    """Of many fields: the one that differs, however deep it lies."""
    inner = dataclasses.make_dataclass("Inner", [("seed", int)], frozen=True)
    fields = [(f"hidden_size_{number}", int, number) for number in range(40)]
    config = dataclasses.make_dataclass("Config", [*fields, ("inner", inner, None)], frozen=True)

    def apply(config, x):
        return x * config.inner.seed

    given = (config(inner=inner(seed)) for seed in (1, 2, 1))
    called(apply, *((one, ONES) for one in given), static_argnums=0)


@builds("apply: first", "apply: static value config")
def configurations_of_two_classes():
    one, other = (dataclasses.make_dataclass(name, [("n", int)], frozen=True) for name in "AB")

    def apply(config, x):
        return x * config.n

    called(apply, (one(1), ONES), (other(1), ONES), (one(1), ONES), static_argnums=0)


@builds("fussy: first", "fussy: shape x", "fussy: failed before", "fussy: shape x")
def raised_for_another_shape():
    @jax.jit
    def fussy(x, *, mask=None, scale=None):
        if x.ndim == 1:
            raise RuntimeError
        return x * scale["by"]

    for x in (ONES, ONES[0], ONES[0], ONES[:2]):
        with contextlib.suppress(RuntimeError):
            fussy(x, scale={"by": 1.0}, mask=2)


@builds("double: raised", "double: first", "double: raised")
def arguments_that_are_none():
    @jax.jit
    def double(x):
        return x * 2

    for x in ("text", ONES, "text"):
        with contextlib.suppress(TypeError):
            double(x)
