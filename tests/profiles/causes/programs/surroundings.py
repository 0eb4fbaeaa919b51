"""Where, how and under which settings: placement, options, contexts, caches, ahead of time."""

from __future__ import annotations

import contextlib
import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from tests.profiles.causes.programs import builds

ONES = np.ones((4, 4), np.float32)


def double(x):
    return x * 2


def doubled(*values):
    """Call one function with each."""
    f = jax.jit(double)
    for value in values:
        f(value)


def under(*contexts):
    """Call one function without a context, and under each."""
    f = jax.jit(double)
    f(ONES)
    for context in contexts:
        with context:
            f(ONES)
    f(ONES)


def on(device):
    return jax.device_put(ONES, device)


def mesh():
    return jax.make_mesh((2,), ("i",), axis_types=(AxisType.Auto,))


@builds("double: first", "double: committed x")
def committed():
    doubled(ONES, on(jax.devices()[0]))


@builds("double: first", "double: committed x")
def committed_no_more():
    doubled(on(jax.devices()[0]), ONES)


@builds("double: first", "double: device x")
def another_device():
    doubled(*map(on, (*jax.devices()[:2], jax.devices()[0])))


@builds("double: first", "double: committed x", "double: device x")
def committed_and_moved():
    doubled(ONES, *map(on, jax.devices()[:2]))


@builds("double: first", "double: sharding x", "double: sharding x")
def sharding():
    ways = (NamedSharding(mesh(), spec) for spec in (P("i"), P()))
    doubled(*map(on, (jax.devices()[0], *ways)))


@builds("double: first", "double: sharding x", "double: sharding x")
def explicit_sharding():
    explicit = jax.make_mesh((2,), ("i",), axis_types=(AxisType.Explicit,))
    doubled(ONES, *(on(NamedSharding(explicit, spec)) for spec in (P("i"), P(None, "i"))))


@builds("double: first", "double: sharding x")
def memory_kind():
    device = jax.devices()[0]
    host = SingleDeviceSharding(device, memory_kind="pinned_host")
    doubled(on(SingleDeviceSharding(device)), on(host))


@builds("double: first", "double: jit options in_shardings")
def in_shardings():
    for spec in (P("i"), P()):
        jax.jit(double, in_shardings=NamedSharding(mesh(), spec))(ONES)


@builds("double: first", "double: layout x")
def layout():
    at = SingleDeviceSharding(jax.devices()[0])
    doubled(on(at), on(Format(Layout((1, 0)), at)))


@builds("double: first", "double: configuration jax_default_matmul_precision")
def matmul_precision():
    under(jax.default_matmul_precision("highest"))


@builds("double: first", "double: dtype x")
def x64():
    f = jax.jit(double)
    f(np.ones(3))
    with jax.enable_x64(True):
        f(np.ones(3))


@builds("double: first", "double: configuration jax_enable_x64")
def x64_of_the_same_types():
    under(jax.enable_x64(True))


@builds("double: first", "double: configuration jax_default_device")
def default_device():
    under(jax.default_device(jax.devices()[1]))


@builds("double: first", "double: configuration mesh")
def mesh_context():
    f = jax.jit(double)
    f(ONES)
    with jax.set_mesh(mesh()):
        f(ONES)


@builds("double: first", "double: configuration xla_metadata", "double: configuration xla_metadata")
def metadata():
    under(*(set_xla_metadata(number=number) for number in range(2)))


@builds("double: first", "double: device x", "double: raised")
def arguments_on_two_devices():
    f = jax.jit(lambda x, y: x + y)
    f.__wrapped__.__name__ = "double"
    one, other = (jax.device_put(ONES, device) for device in jax.devices()[:2])
    f(one, one)
    f(other, other)
    with contextlib.suppress(ValueError):
        f(one, other)


@builds("double: first", "double: donation x")
def donation():
    jax.jit(double)(jax.device_put(ONES))
    jax.jit(double, donate_argnums=0)(jax.device_put(ONES))


@builds("double: first", "double: jit options compiler_options")
def compiler_options():
    jax.jit(double)(ONES)
    jax.jit(double, compiler_options={"xla_dump_max_hlo_modules": 7})(ONES)


@builds("double: first", "double: jit options out_shardings")
def out_shardings():
    jax.jit(double)(ONES)
    jax.jit(double, out_shardings=SingleDeviceSharding(jax.devices()[0]))(ONES)


@builds("power: first", "power: jit options static_argnames")
def static_names():
    def power(x, n):
        return x * n

    jax.jit(power)(ONES, n=2)
    jax.jit(power, static_argnames="n")(ONES, n=2)


@builds("power: first", "power: jit options static_argnums")
def static_numbers():
    def power(*given):  # its arguments have no names
        return given[0] * given[1]

    jax.jit(power)(ONES, 2)
    jax.jit(power, static_argnums=1)(ONES, 2)


@builds("double: first", "double: cache cleared jax.clear_caches()")
def clear_caches():
    f = jax.jit(double)
    f(ONES)
    jax.clear_caches()
    f(ONES)


@builds("triple: first", "double: first", "double: cache cleared double.clear_cache()")
def clear_cache():
    def triple(x):
        return x * 3

    f, g = jax.jit(double), jax.jit(triple)
    g(ONES)
    f(ONES)
    f.clear_cache()
    f(ONES)
    g(ONES)


@builds("double: first", "double: shape x")
def cleared_and_another_shape():
    f = jax.jit(double)
    f(ONES)
    jax.clear_caches()
    f(ONES[0])


@builds("double: first", "double: first", "double: first")
def ahead_of_time():
    f = jax.jit(double)
    f.trace(ONES).lower().compile()
    f(ONES)


@builds("double: first", "double: shape x", "double: shape x", "double: shape x")
def ahead_of_time_for_another_shape():
    f = jax.jit(double)
    f(ONES)
    f.lower(jax.ShapeDtypeStruct((7,), np.float32)).compile()
    f(np.ones(7, np.float32))


@builds("double: first", "double: ahead of time compiler_options")
def compiled_with_options():
    f = jax.jit(double)
    f(ONES)
    f.lower(ONES).compile({"xla_dump_max_hlo_modules": 9})


@builds("double: first", "double: ahead of time lowering_platforms")
def lowered_for_another_platform():
    f = jax.jit(double)
    f(ONES)
    f.trace(ONES).lower(lowering_platforms=("tpu",))


@builds("double: first", "double: first", "double: committed x", "double: committed x")
def committed_ahead_of_time():
    f = jax.jit(double)
    jax.eval_shape(f, ONES)
    f(ONES)
    at = SingleDeviceSharding(jax.devices()[0])
    f.lower(jax.ShapeDtypeStruct((4, 4), np.float32, sharding=at)).compile()
    f(jax.device_put(ONES, at))


@builds("fussy: first", "fussy: failed before")
def tried_again():
    raised = []

    @jax.jit
    def fussy(x):
        if not raised:
            raised.append(x.shape)
            raise RuntimeError
        return x

    try:
        fussy(ONES)
    except RuntimeError:
        fussy(ONES)


@builds("slow: first")
def threads_at_once():
    @jax.jit
    def slow(x):
        for _ in range(20):
            x = jnp.sin(x) @ x
        return x

    threads = [threading.Thread(target=slow, args=(ONES,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@builds("double: first")
def threads_one_after_the_other():
    f = jax.jit(double)
    for _ in range(2):
        thread = threading.Thread(target=f, args=(ONES,))
        thread.start()
        thread.join()


@builds("double: first", "double: configuration jax_default_matmul_precision")
def context_of_a_thread():
    f = jax.jit(double)

    def other():
        with jax.default_matmul_precision("high"):
            f(ONES)

    f(ONES)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()


@builds("double: first", "double: first", "called: first")
def symbolic_shapes():
    (n,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(double))(jax.ShapeDtypeStruct((n,), np.float32))

    @jax.jit
    def called(x):
        return exported.call(x)

    called(np.ones(3, np.float32))


@builds("step: first")
def training():
    @functools.partial(jax.jit, donate_argnums=0)
    def step(params, x):
        gradient = jax.grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)

    params = {"w": jax.device_put(ONES)}
    for _ in range(4):
        params = step(params, ONES)
