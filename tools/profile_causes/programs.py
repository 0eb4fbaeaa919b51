"""Small programs, each of which says what it must be found to build, and why."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

ONES = np.ones((4, 4), np.float32)


def double(x):
    return x * 2


class Small(NamedTuple):
    """A program that runs under a profile of its own, after `jax.clear_caches()`."""

    name: str
    run: Callable[[], None]
    builds: tuple[str, ...]
    """`function: cause argument` of every build, in order."""
    operations: bool
    """Whether JAX's own operations are among them."""


ALL: list[Small] = []


def declare(name, run, *expected, operations=False):
    """Declare a program by what it builds; nothing else may be found."""
    ALL.append(Small(name, run, expected, operations))


def builds(*expected, operations=False):
    """Declare a function to be a program, of its own name."""
    return lambda run: declare(run.__name__, run, *expected, operations=operations)


def doubling(*causes):
    """Declare a program that is given a function, jitted."""
    expected = [f"double: {cause}" for cause in causes]
    return lambda run: declare(run.__name__, lambda: run(jax.jit(double)), *expected)


def calls(made, *causes, name="", **options):
    """Declare that a function is jitted once, and called with each of what `made()` returns."""

    def decorate(function):
        def run():
            jitted = jax.jit(function, **options)
            for given in made():
                jitted(*given)

        of = function.__name__
        declare(name or of, run, *(f"{of}: {cause}" for cause in ("first", *causes)))

    return decorate


# What is passed: shapes, dtypes, structures, static values; and what must not matter.

frozen = functools.partial(dataclasses.make_dataclass, frozen=True)


def scaled(x, by=2.0):
    return x * by


def weighted(x, by):
    return (x * by).sum()


def power(x, n):
    return x ** int(n)


def added(xs):
    return sum(xs.values() if isinstance(xs, dict) else xs)


def apply(x, options):
    return x * getattr(options, "scale", 2)


def made_anew():
    return lambda x: x + 1


class Options:
    """What is equal to nothing else."""


class Named:
    """What is equal by more than functions read."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


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
calls(lambda: [([ONES, ONES],), ((ONES, ONES),)], "pytree xs", name="list_for_tuple")(added)
calls(lambda: [({"a": ONES},), ({"a": ONES, "b": ONES},)], "pytree xs", name="keys_of_a_dict")(
    added
)
calls(
    lambda: [(ONES, n) for n in (1, True, np.int64(1), 1.0)],
    *["static value n"] * 3,
    name="static_types",
    static_argnums=1,
)(power)

configured("static_object_without_equality", lambda: (Options(), Options()), "static value options")
configured("static_objects_compared", lambda: map(Named, "ab"), "static value options")
configured("static_nan", lambda: (float("nan"), float("nan")), "static value options")
configured(
    "static_dtypes",
    lambda: (jnp.float32, np.float32, np.dtype("float32"), "float32"),
    *["static value options"] * 3,
)
configured(
    "static_class_recreated",
    lambda: (enum.Enum("Mode", "FAST", module=__name__).FAST for _ in range(2)),
    "static value options",
)
configured(
    "static_frozen_class_recreated",
    lambda: (frozen("Mode", [("n", int)])(1) for _ in range(2)),
    "static value options",
)
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


calls(
    lambda: [(jax.random.key(0, impl=impl),) for impl in ("threefry2x32", "rbg")],
    "dtype key",
    name="keys_of_two_implementations",
)(lambda key: jax.random.normal(key, (3,)))


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


@doubling("raised", "first", "raised")
def arguments_that_are_none(jitted):
    for x in ("text", ONES, "text"):
        with contextlib.suppress(TypeError):
            jitted(x)


# Which function: made anew, wrapped, bound, derived; and what is the same for JAX.


def total(x):
    return (x**2).sum()


class Predictor:
    def __call__(self, x):
        return x * 2

    def predict(self, x):
        return x * 2


PREDICTOR = Predictor()


def anew(name, made, built, before=None):
    """What `made()` returns is called twice, and what it returns once more."""

    def run():
        if before is not None:
            jax.jit(before)(ONES)
        for _ in range(2):
            function = made()
            function(ONES)
            function(ONES)

    declare(name, run, *built)


def again(name, firsts=1, others=1):
    return [f"{name}: first"] * firsts + [f"{name}: new function object {name}"] * others


anew("lambda_in_a_loop", lambda: jax.jit(lambda x: x * 2), again("<lambda>"))
anew("jit_in_a_loop", lambda: jax.jit(double), again("double", 1, 0))
anew("partial_in_a_loop", lambda: jax.jit(functools.partial(power, n=2)), again("power"))
anew("bound_method", lambda: jax.jit(PREDICTOR.predict), again("predict"))
anew("callable_object", lambda: jax.jit(PREDICTOR), again("<unnamed function>", 1, 0))
anew("wraps_in_a_loop", lambda: jax.jit(functools.wraps(double)(lambda x: x)), again("double"))
anew("gradient_in_a_loop", lambda: jax.jit(jax.grad(total)), again("total", 2), before=total)
anew("vmap_in_a_loop", lambda: jax.jit(jax.vmap(double)), again("double", 2), before=double)


@builds("<lambda>: first", "<lambda>: first")
def two_lambdas_on_a_line():
    one, other = jax.jit(lambda x: x * 2), jax.jit(lambda x: x * 3)
    one(ONES)
    other(ONES)


@builds("total: first", "total: first", "total: shape x", "total: shape x")
def gradient_of_a_jitted_function():
    jitted = jax.jit(total)
    for x in (ONES, ONES, ONES[0], ONES[0]):
        jax.grad(jitted)(x)


@builds("scaled: first", "scaled: first", "scaled: weak type by")
def batched_with_another_type():
    jitted = jax.jit(scaled)
    jitted(ONES, 2.0)
    jax.vmap(jitted, (None, 0))(ONES, ONES[0])  # its program is another in any case
    jitted(ONES, ONES[0, 0])


@builds(*["weighted: first"] * 3, "weighted: weak type by")
def differentiated_before_with_another_type():
    jitted = jax.jit(weighted)
    jax.grad(jitted)(ONES, 2.0)
    jitted(ONES, ONES[0, 0])
    jitted(ONES, 2.0)


@builds("outer: first", "double: first", "double: shape x")
def traced_inside_another_first():
    inner = jax.jit(double)

    @jax.jit
    def outer(x):
        return inner(x) + inner(x[0])

    outer(ONES)
    inner(ONES)
    inner(ONES[0])


@builds(
    "add: first",
    "scan: first",
    "scan: new function object jaxpr",
    operations=True,
)
def scan_with_a_new_body():
    for _ in range(2):
        jax.lax.scan(lambda carry, x: (carry + x, x), np.float32(0), np.ones(3, np.float32))


@builds("equal: first", "stage: first", "cond: first", "equal: first", operations=True)
def traced_for_a_branch_with_nothing_of_it_first():
    x, y = jax.device_put((np.float32(1), np.float32(2)))
    jax.lax.cond(True, lambda: jnp.equal(x, y), lambda: False)
    jnp.equal(x, y)


@builds("double: first", "double: first")
def traced_for_a_branch_first():
    jitted = jax.jit(double)
    jax.lax.cond(True, jitted, lambda x: x, jnp.ones(3))
    jitted(jnp.ones(3))


@builds(
    "broadcast_in_dim: first",
    "broadcast_in_dim: shape shape",
    "broadcast_in_dim: shape shape",
    operations=True,
)
def ones_in_a_loop():
    for n in (2, 3, 4, 2):
        jax.lax.broadcast(np.float32(1), (n,))


@builds("exp: first", "exp: first", "exp: first", operations=True)
def operation_under_a_transformation_first():
    x = jax.device_put(np.float32(1))
    jax.vjp(jnp.exp, x)
    jax.vmap(jnp.exp)(np.ones(1, np.float32))
    jnp.exp(x)


@builds("add: first", "add: sharding x", operations=True)
def operation_on_a_spread_array():
    for place in sharded(["i"], []):
        x = jax.device_put(ONES, place)
        jnp.add(x, x)


@builds("add: first", "add: committed x", operations=True)
def operation_on_a_committed_array():
    x = jax.device_put(ONES)
    jnp.add(x, x)
    x = jax.device_put(x, jax.devices()[0])
    jnp.add(x, x)


@builds("predict: first", "predict: shape x")
def equal_bound_methods():
    one, other = jax.jit(PREDICTOR.predict), jax.jit(PREDICTOR.predict)
    one(ONES)
    for x in (ONES, ONES[0]):
        other(x)


@builds("double: first", "double: shape flat_args[0]")
def pmap():
    mapped = jax.pmap(double)
    for x in (ONES[:2], ONES[:2, 0], ONES[:2]):
        mapped(x)


@builds()
def shard_map_outside_jit():
    """JAX builds all of it anew in each call; its functions, and none of them unexplained."""
    mesh = jax.make_mesh((2,), ("i",), axis_types=(AxisType.Auto,))
    sharded = jax.shard_map(double, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    for _ in range(2):
        sharded(ONES)


@builds("double: first", "double: first", "call: first", "call: new function object call")
def exported():
    program = jax.export.export(jax.jit(double))(jax.ShapeDtypeStruct((4, 4), np.float32))
    for _ in range(2):
        jax.jit(program.call)(ONES)


@builds("norm: first", "norm: shape x", "dot: first", "dot: shape a")
def functions_of_jax_that_the_program_jits():
    for function in (jax.jit(jnp.linalg.norm), jax.jit(jax.vmap(jnp.dot))):
        for rows in (2, 3, 2):
            function(*[np.ones((rows, 3), np.float32)] * (1 + (function.__name__ == "dot")))


# Where, how and under which settings: placement, options, contexts, caches, ahead of time.


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
under(
    "metadata", "xla_metadata", *(functools.partial(set_xla_metadata, number=n) for n in range(2))
)


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


@doubling("first", "first", "committed x", "committed x")
def committed_ahead_of_time(f):
    jax.eval_shape(f, ONES)
    f(ONES)
    f.lower(jax.ShapeDtypeStruct((4, 4), np.float32, sharding=at())).compile()
    f(on(at()))


# Loops whose bodies JAX traces a second time, as it promotes a carry; and one that it does not.


def looping(begin):
    """Return a program that adds up in a scan from this on."""

    @jax.jit
    def total(xs):
        return jax.lax.scan(lambda c, x: (c + x, None), begin, xs)[0]

    return lambda: total(ONES[0])


declare("scan_from_0", looping(0), "total: first")
declare("scan_from_its_own_dtype", looping(np.float32(0)), "total: first")


@calls(lambda: [(ONES,)])
def while_from_0(x):
    return jax.lax.while_loop(lambda c: c[1] < 9, lambda c: (c[0] + 1, x[0, 0] + c[1]), (0, 0))


@builds("slow: first")
def threads_at_once():
    @jax.jit
    def slow(x):
        for _ in range(20):
            x = jnp.sin(x) @ x
        return x

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(slow, [ONES] * 3))
