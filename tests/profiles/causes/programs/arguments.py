"""What is passed: shapes, dtypes, structures, static values; and what must not matter."""

from __future__ import annotations

import contextlib
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from tests.profiles.causes.programs import builds, calls

ONES = np.ones((4, 3), np.float32)
frozen = functools.partial(dataclasses.make_dataclass, frozen=True)


def double(x):
    return x * 2


def scaled(x, by=2.0):
    return x * by


def power(x, n):
    return x ** int(n)


def total(xs):
    return sum(xs.values() if isinstance(xs, dict) else xs)


def apply(x, options):
    return x * getattr(options, "scale", 2)


def made_anew():
    return lambda x: x + 1


class Options:
    """What is equal to nothing else."""


@dataclasses.dataclass(frozen=True)
class Model:
    """What is equal to another of the same scale."""

    scale: float = 2.0

    def __call__(self, x):
        return x * self.scale


def doubled(name, made, *causes):
    calls(lambda: [(value,) for value in made()], *causes, name=name)(double)


def configured(name, made, *causes, arrays=(ONES,) * 9):
    """A function with a static argument, which is made anew for each call."""
    calls(lambda: zip(arrays, made(), strict=False), *causes, name=name, static_argnums=1)(apply)


doubled("shape", lambda: (ONES, ONES[:2], ONES), "shape x")
doubled("rank", lambda: (ONES, ONES[0]), "shape x")
doubled("many_shapes", lambda: [np.ones(n) for n in range(1, 5)] * 2, *["shape x"] * 3)
doubled("dtype", lambda: (ONES, ONES.astype(np.int32)), "dtype x")
doubled("int_for_float", lambda: (1.5, 2), "dtype x")
doubled("weak_type", lambda: (1.5, np.float32(1.5)), "weak type x")
doubled("weak_type_among_shapes", lambda: (1.5, ONES, np.float32(1.5)), "shape x", "weak type x")
doubled("what_does_not_matter", lambda: (ONES, ONES + 1, jnp.asarray(ONES), ONES[::-1]))
doubled("other_numbers", lambda: (1.0, 2.5, float("inf")))

calls(lambda: [(ONES,), (ONES, 2.0)], "pytree by", name="default_left_out")(scaled)
calls(lambda: [([ONES, ONES],), ((ONES, ONES),)], "pytree xs", name="list_for_tuple")(total)
calls(lambda: [({"a": ONES},), ({"a": ONES, "b": ONES},)], "pytree xs", name="keys_of_a_dict")(
    total
)
calls(
    lambda: [(ONES, n) for n in (1, True, np.int64(1), 1.0)],
    *["static value n"] * 3,
    name="static_types",
    static_argnums=1,
)(power)

configured("static_object_without_equality", lambda: (Options(), Options()), "static value options")
configured("static_string", lambda: ("train", "eval", "train"), "static value options")
configured("static_tuple", lambda: ((3, 4), (2, 6), (3, 4)), "static value options")
configured("static_objects_that_are_equal", lambda: (Model(), Model()))
configured("static_lambda", lambda: (made_anew(), made_anew()), "static value options")
configured("static_models_of_a_class", lambda: map(Model, (1, 2, 1)), "static value options.scale")
configured(
    "configurations_of_two_classes",
    lambda: [frozen(name, [("n", int)])(1) for name in "AB"] * 2,
    "static value options",
)


@calls(lambda: [(ONES, None), (ONES, ONES)], "pytree mask")
def none_for_an_array(x, mask):
    return x if mask is None else x * mask


@calls(lambda: [(jax.random.PRNGKey(0),), (jax.random.key(0),)], "dtype key")
def key_types(key):
    return jax.random.normal(key, (3,))


@calls(lambda: [(jax.new_ref(jnp.ones(3, kind)),) for kind in ("float32", "int32")], "dtype ref")
def references(ref):
    return ref[...] + 1


@calls(
    lambda: [(1, ONES, 0), (1, ONES[0], 0), (2, ONES, 0), (3, ONES[0], (0, 0))],
    "shape x",
    "static value n",
    "pytree y",
    static_argnums=0,
)
def one_thing_then_another_then_both(n, x, y):
    return x * n


@builds("power: first", "power: pytree n")
def static_by_keyword():
    raised = jax.jit(power, static_argnames="n")
    raised(ONES, 2)
    raised(ONES, n=2)


@builds("scaled: first", "scaled: pytree by")
def keyword_for_position():
    scale = jax.jit(scaled)
    scale(ONES, ONES)
    scale(ONES, by=ONES)


@builds()
def unhashable_static():
    with contextlib.suppress(ValueError):
        jax.jit(power, static_argnums=1)(ONES, [2])
        raise AssertionError("JAX took a list as a static argument")


@builds("apply: first", "apply: static value options.inner.seed")
def one_field_of_a_static_configuration():
    """Of many fields: the one that differs, however deep it lies."""
    inner = frozen("Inner", [("seed", int)])
    fields = [(f"hidden_size_{number}", int, number) for number in range(40)]
    config = frozen("Config", [*fields, ("inner", inner, None)])
    jitted = jax.jit(apply, static_argnums=1)
    for seed in (1, 2, 1):
        jitted(ONES, config(inner=inner(seed)))


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
    jitted = jax.jit(double)
    for x in ("text", ONES, "text"):
        with contextlib.suppress(TypeError):
            jitted(x)
