"""Where, how and under which settings: placement, options, contexts, caches, ahead of time."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from tests.profiles.causes.programs import builds, calls, declare

ONES = np.ones((4, 4), np.float32)


def double(x):
    return x * 2


def times(x, n):
    return x * n


def of_given(*given):  # its arguments have no names
    return given[0] * given[1]


def on(place):
    """Return an array on a device, by its number, or with a sharding."""
    return jax.device_put(ONES, jax.devices()[place] if isinstance(place, int) else place)


def at(**other):
    return SingleDeviceSharding(jax.devices()[0], **other)


def mesh(kind=AxisType.Auto):
    return jax.make_mesh((2,), ("i",), axis_types=(kind,))


def sharded(*specs, kind=AxisType.Auto):
    return [NamedSharding(mesh(kind), P(*spec)) for spec in specs]


def placed(name, places, *causes):
    """One function, and an array in several places; None: JAX may move it."""

    def made():
        return [(ONES if place is None else on(place),) for place in places()]

    calls(made, *causes, name=name)(double)


placed("committed", lambda: (None, 0), "committed x")
placed("committed_no_more", lambda: (0, None), "committed x")
placed("another_device", lambda: (0, 1, 0), "device x")
placed("committed_and_moved", lambda: (None, 0, 1), "committed x", "device x")
placed("sharding", lambda: (0, *sharded(["i"], [])), "sharding x", "sharding x")
placed(
    "explicit_sharding",
    lambda: (None, *sharded(["i"], [None, "i"], kind=AxisType.Explicit)),
    "sharding x",
    "sharding x",
)
placed("memory_kind", lambda: (at(), at(memory_kind="pinned_host")), "sharding x")
placed("layout", lambda: (at(), Format(Layout((1, 0)), at())), "layout x")


def under(name, cause, *contexts):
    """One function outside the contexts, in each of them, and outside again."""

    def run():
        jitted = jax.jit(double)
        for context in (contextlib.nullcontext, *contexts, contextlib.nullcontext):
            with context():
                jitted(ONES)

    declare(name, run, "double: first", *[f"double: configuration {cause}"] * len(contexts))


PRECISION = "jax_default_matmul_precision"
under("matmul_precision", PRECISION, lambda: jax.default_matmul_precision("highest"))
under("x64_of_the_same_types", "jax_enable_x64", lambda: jax.enable_x64(True))
under("default_device", "jax_default_device", lambda: jax.default_device(jax.devices()[1]))
under("mesh_context", "mesh", lambda: jax.set_mesh(mesh()))
under("metadata", "xla_metadata", *(partial(set_xla_metadata, number=n) for n in range(2)))


def options(name, several, cause):
    """One function that is jitted with one set of options after another."""

    def run():
        for one in several():
            jax.jit(double, **one)(jax.device_put(ONES))

    declare(name, run, "double: first", f"double: {cause}")


DUMP = {"compiler_options": {"xla_dump_max_hlo_modules": 7}}
options("donation", lambda: ({}, {"donate_argnums": 0}), "donation x")
options("compiler_options", lambda: ({}, DUMP), "jit options compiler_options")
options("out_shardings", lambda: ({}, {"out_shardings": at()}), "jit options out_shardings")
options(
    "in_shardings",
    lambda: [{"in_shardings": one} for one in sharded(["i"], [])],
    "jit options in_shardings",
)


def doubling(*causes):
    """Declare a program that is given a function, jitted."""
    expected = [f"double: {cause}" for cause in causes]
    return lambda run: declare(run.__name__, lambda: run(jax.jit(double)), *expected)


@doubling("first", "dtype x")
def x64(f):
    f(np.ones(3))
    with jax.enable_x64(True):
        f(np.ones(3))


@builds("times: first", "times: device x", "times: raised")
def arguments_on_two_devices():
    f = jax.jit(times)
    for given in ((on(0), on(0)), (on(1), on(1)), (on(0), on(1))):
        with contextlib.suppress(ValueError):
            f(*given)


@builds("times: first", "times: jit options static_argnames")
def static_names():
    for names in ((), "n"):
        jax.jit(times, static_argnames=names)(ONES, n=2)


@builds("of_given: first", "of_given: jit options static_argnums")
def static_numbers():
    for numbers in ((), 1):
        jax.jit(of_given, static_argnums=numbers)(ONES, 2)


@doubling("first", "cache cleared jax.clear_caches()")
def clear_caches(f):
    f(ONES)
    jax.clear_caches()
    f(ONES)


@builds("times: first", "double: first", "double: cache cleared double.clear_cache()")
def clear_cache():
    f, g = jax.jit(double), jax.jit(times)
    g(ONES, 2)
    f(ONES)
    f.clear_cache()
    f(ONES)
    g(ONES, 2)


@doubling("first", "shape x")
def cleared_and_another_shape(f):
    f(ONES)
    jax.clear_caches()
    f(ONES[0])


@doubling("first", "first", "first")
def ahead_of_time(f):
    f.trace(ONES).lower().compile()
    f(ONES)


@doubling("first", "ahead of time compiler_options")
def compiled_with_options(f):
    f(ONES)
    f.lower(ONES).compile({"xla_dump_max_hlo_modules": 9})


@doubling("first", "ahead of time lowering_platforms")
def lowered_for_another_platform(f):
    f(ONES)
    f.trace(ONES).lower(lowering_platforms=("tpu",))


@doubling("first", "first", "committed x", "committed x")
def committed_ahead_of_time(f):
    jax.eval_shape(f, ONES)
    f(ONES)
    f.lower(jax.ShapeDtypeStruct((4, 4), np.float32, sharding=at())).compile()
    f(on(at()))


@builds("fussy: first", "fussy: failed before")
def tried_again():
    raised = []

    @jax.jit
    def fussy(x):
        if not raised:
            raised.append(x.shape)
            raise RuntimeError
        return x

    for _ in range(2):
        with contextlib.suppress(RuntimeError):
            fussy(ONES)


@builds("slow: first")
def threads_at_once():
    @jax.jit
    def slow(x):
        for _ in range(20):
            x = jnp.sin(x) @ x
        return x

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(slow, [ONES] * 3))
