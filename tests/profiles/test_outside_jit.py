"""What is advised of loops and shard_maps outside jit, by how they are written."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harness
from harness.profiles.causes.cause import Remedy
from harness.profiles.finding import Finding
from harness.profiles.findings import findings

SIZES = range(3, 11)


def one_line():
    for size in SIZES:
        jnp.sin(np.ones(size, np.float32))


def one_line_of_two_operations():
    x = jnp.asarray(np.ones((20, 3), np.float32))
    return sum(float(x[:size].sum()) for size in SIZES)


def two_lines():
    x = jnp.asarray(np.ones((20, 3), np.float32))
    for size in SIZES:
        part = x[:size]
        part.sum()


def distinct_values():
    for size in SIZES:
        jnp.unique(np.arange(20) % size)


def masked():
    x = jnp.asarray(np.arange(20, dtype=np.float32))
    for size in SIZES:
        x[x > size]


def add(carry, x):
    return carry + x, carry


def scan_of_one_body():
    for size in SIZES:
        jax.lax.scan(add, np.float32(0), np.ones(size, np.float32))


def weights_of_a_network():
    shapes = [(3, 4), (4,), (4, 5), (5,), (5, 6), (6,), (2, 2, 3), (3,)]
    jax.tree.map(lambda shape: jnp.zeros(shape), shapes, is_leaf=lambda one: isinstance(one, tuple))


def dearest(program) -> Finding:
    jax.clear_caches()
    with harness.profile(sample_ms=0) as profile:
        program()
    kinds = ("large", "small", "loop", "shard_map")
    return next(one for one in findings(profile) if one.kind in kinds)


@pytest.mark.parametrize(
    ("program", "remedy"),
    [
        (one_line, Remedy("few sizes")),
        (distinct_values, Remedy("size", value="jnp.unique")),
        (scan_of_one_body, Remedy("few sizes")),
        *(
            pytest.param(program, remedy, marks=pytest.mark.nightly)
            for program, remedy in (
                (one_line_of_two_operations, Remedy("few sizes")),
                (two_lines, Remedy("few sizes")),
                (masked, Remedy("where")),
            )
        ),
    ],
)
def test_a_loop_over_sizes_is_not_to_be_jitted(program, remedy):
    found = dearest(program)
    assert (found.remedy, found.sizes, found.recreated) == (remedy, 7, False)


def test_a_loop_of_bodies_that_are_recreated_is_named_so_with_a_second_trace_of_one():
    def several():
        for begin in (np.float32(0), np.float32(0), 0):
            jax.lax.scan(lambda c, x: (c + x, time.sleep(0.06)), begin, X)

    found = dearest(several)
    assert (found.count, found.recreated, found.remedy) == (3, True, Remedy("jit around loop"))
    loop = found.promoted
    assert (loop.loop, loop.file, loop.before, loop.after) == (
        "scan",
        __file__,
        "int32",
        "float32",
    )


def test_callbacks_outside_jit_of_recreated_functions_are_named_with_the_function():
    def several():
        for _ in range(3):
            jax.pure_callback(lambda x: np.sin(x), jax.ShapeDtypeStruct((4,), np.float32), X)

    found = dearest(several)
    (given,) = found.function.around
    assert (found.count, found.recreated, found.remedy) == (3, True, Remedy("jit around loop"))
    assert (given.name.rpartition(".")[2], given.file) == ("<lambda>", __file__)


def test_operations_that_run_by_themselves_as_jit_is_disabled_are_not_to_be_jitted():
    @jax.jit
    def step(x):
        return jnp.sin(x).sum() + jnp.tanh(x).sum()

    def run():
        with jax.disable_jit():
            step(jnp.asarray(X))

    found = dearest(run)
    assert (found.when, found.remedy) == ("disabled", Remedy("jit on"))


@pytest.mark.nightly
def test_the_weights_of_a_network_are_no_loop_over_sizes():
    assert dearest(weights_of_a_network).sizes == 0


def g(x):
    return jnp.sin(x) * 2


def g_with_a_sum(x):
    return jax.lax.psum(jnp.cos(x), "i")


X = np.arange(4, dtype=np.float32)


def mapped(function):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("i")
    outside = jax.sharding.PartitionSpec() if function is g_with_a_sum else spec
    return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=outside)


@pytest.mark.parametrize(
    "function",
    [g, *(pytest.param(one, marks=pytest.mark.nightly) for one in (jax.jit(g), g_with_a_sum))],
    ids=["g", "jit(g)", "psum"],
)
def test_a_shard_map_outside_jit_is_to_be_jitted_itself(function):
    f = mapped(function)
    calls = 3

    def several(f):
        for _ in range(calls):
            f(X)

    found = dearest(lambda: several(f))
    assert (found.kind, found.remedy.kind) == ("shard_map", "jit shard_map")
    # Followed: the same result, of one program.
    with harness.profile(sample_ms=0) as profile:
        several(jitted := jax.jit(f))
    assert sum(built.compiles for built in profile.builds) == 1
    assert np.array_equal(jitted(X), f(X))
