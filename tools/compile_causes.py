"""What the remedy of each cause of `harness compile` saves, measured on the JAX that runs this.

    python -m tools.compile_causes [--target cpu --target gpu:h200 ...] [--write] [KIND ...]

Each experiment is one small program as it is and one with the remedy, in turns: seconds of lower
and compile, seconds of a call on a CPU, or XLA's flops where nothing can be called; the least of
three. Targets are built in processes of their own (two minutes each). `--write` stores what was
measured in harness/program/compiler/measured.csv, in place of the same kind, target and release.
"""

import csv
import functools
import json
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harness import targets
from harness.program.compiler.causes import FAMILIES
from harness.program.compiler.evidence import FILE, Experiment
from harness.program.cost import analysis
from harness.targets import topologies
from tools.performance.command import fresh, options

TARGETS = ("cpu", "gpu:h200", "tpu:v5e")
ROUNDS = 3
KNOWN = np.random.default_rng(0).random((150, 150), np.float32)
VECTOR = (64,), "float32"
"""Arguments are shapes and dtypes."""


def constants():
    big = np.random.default_rng(0).random(5_000_000, np.float32)
    return (
        lambda x: big * x[0],
        [VECTOR],
        lambda x, big: big * x[0],
        [VECTOR, (big.shape, "float32")],
    )


def folding():
    def known(x, most):
        return x + most[0, :64]

    return lambda x: known(x, lax.sort(KNOWN)), [VECTOR], known, [VECTOR, (KNOWN.shape, "float32")]


def kernels_of_scatter():
    def written(x, places):
        for n in range(40):
            x = x.at[places[n]].add(1.0)
        return x

    given = [VECTOR, ((40, 4), "int32")]
    return written, given, lambda x, places: x.at[places.reshape(-1)].add(1.0), given


def sort_by_keys():
    def by_indices(x):
        def by_key(n, order):
            return order[jnp.argsort(x[31 - n, order], stable=True)]

        return x[:, lax.fori_loop(0, 32, by_key, jnp.arange(256))]

    given = [((32, 256), "float32")]
    return lambda x: lax.sort([*x], num_keys=32), given, by_indices, given


def sort():
    given = [((32, 256), "float32")]
    return lambda x: lax.sort([*x], num_keys=1), given, lambda x: x[:, jnp.argsort(x[0])], given


def unrolled_scan():
    def scanned(unroll, x):
        return lax.scan(lambda x, _: (jnp.tanh(x[::-1]) * 1.5, None), x, None, 256, unroll=unroll)[
            0
        ]

    as_it_is, remedied = (functools.partial(scanned, each) for each in (64, 1))
    return as_it_is, [VECTOR], remedied, [VECTOR]


def switch():
    def branches(which, x):
        return lax.switch(which, [lambda x, n=n: jnp.sin(x * n)[::-1] for n in range(60)], x)

    def indexed(which, x):
        return jnp.sin(x * jnp.arange(60.0)[which])[::-1]

    given = [((), "int32"), VECTOR]
    return branches, given, indexed, given


def switch_of_other_branches():
    def branch(n, x):
        return jnp.sin(jnp.cos(x)[:: 1 + n % 5].sum() * n * x)

    def branches(which, x):
        return lax.switch(which, [functools.partial(branch, n) for n in range(60)], x)

    given = [((), "int32"), VECTOR]
    return branches, given, lambda _, x: branch(7, x), given


def body(x):
    return jnp.sin(x) + x[::-1]


def loop():
    def written(x):
        for _ in range(100):
            x = body(x)
        return x

    return written, [VECTOR], lambda x: lax.fori_loop(0, 100, lambda _, x: body(x), x), [VECTOR]


def loop_of_other_shapes():
    def written(x):
        total = 0.0
        for n in range(1, 60):
            total += body(x[:n]).sum()
        return total

    def padded(x):
        def turn(n, total):
            place = jnp.arange(64)
            back = jnp.where(place < n, x[jnp.clip(n - 1 - place, 0)], 0)
            return total + jnp.where(place < n, jnp.sin(x) + back, 0).sum()

        return lax.fori_loop(1, 60, turn, 0.0)

    return written, [VECTOR], padded, [VECTOR]


def repeated():
    def written(x):
        return functools.reduce(lambda x, _: body(x), range(100), x)

    return written, [VECTOR], loop()[2], [VECTOR]


def leaves():
    def step(x):
        return x - 0.1 * jnp.tanh(x) * jnp.sign(x)

    many = [((8,), "float32")] * 300
    return lambda *xs: [*map(step, xs)], many, step, [((2400,), "float32")]


def library():
    import optax  # an optimizer's line search traces the function in several places

    def value(p):  # with ten bodies this takes minutes on jax 0.12.0.1
        return (body(body(body(p))) ** 2).sum()

    def step(search, p):
        v, g = jax.value_and_grad(value)(p)
        return search.update(g, search.init(p), p, value=v, grad=g, value_fn=value)[0]

    zoom = optax.scale_by_zoom_linesearch(max_linesearch_steps=15)
    backtracking = optax.scale_by_backtracking_linesearch(max_backtracking_steps=15)
    as_it_is, remedied = (functools.partial(step, each) for each in (zoom, backtracking))
    return as_it_is, [VECTOR], remedied, [VECTOR]


def associative_scan():
    given = [((4096, 8), "float32")]
    return lambda x: lax.associative_scan(jnp.add, x), given, lambda x: jnp.cumsum(x, 0), given


def integer_product():
    def by_int32(a, b):
        return lax.dot(a, b, preferred_element_type="int32").astype("int8")

    given = [((512, 512), "int8")] * 2
    return lax.dot, given, by_int32, given


def integer_convolution():
    def convolved(a, b):
        return lax.conv(a, b, (1, 1), "SAME")

    def by_float32(a, b):
        return convolved(a.astype("float32"), b.astype("float32")).astype("int8")

    given = [((1, 32, 64, 64), "int8"), ((32, 32, 3, 3), "int8")]
    return convolved, given, by_float32, given


def ragged_dot():
    def batched(x, w, _):  # of groups of one size
        return jnp.einsum("gbk,gkn->gbn", x.reshape(16, 16, 128), w).reshape(256, 128)

    given = [((256, 128), "float32"), ((16, 128, 128), "float32"), ((16,), "int32")]
    return lax.ragged_dot, given, batched, given


def dumps():
    def program(x):
        for _ in range(30):
            x = body(x)
        return x

    folder = tempfile.mkdtemp(prefix="harness-dump-")
    written = {"xla_dump_to": folder, "xla_dump_hlo_pass_re": ".*"}
    return jax.jit(program, compiler_options=written), [VECTOR], program, [VECTOR]


CALLED = (integer_product, integer_convolution, ragged_dot)
"""Experiments in which a call is slow, not its compile."""

EXPERIMENTS = {
    one.__name__.replace("_", " "): one
    for one in (
        constants,
        folding,
        kernels_of_scatter,
        sort,
        sort_by_keys,
        unrolled_scan,
        switch,
        switch_of_other_branches,
        loop,
        loop_of_other_shapes,
        repeated,
        leaves,
        library,
        associative_scan,
        dumps,
        integer_product,
        integer_convolution,
        ragged_dot,
    )
}


def build_s(jitted, given):
    jax.clear_caches()
    begin = time.perf_counter()
    jitted.trace(*given).lower().compile()
    return time.perf_counter() - begin


def call_s(compiled, given):
    begin = time.perf_counter()
    jax.block_until_ready(compiled(*given))
    return time.perf_counter() - begin


def measured(place, kind):
    """Return what one experiment gives for a target, as it is and with the remedy."""
    one = place.description and topologies.describe(place.name, place.description).one
    program, given, remedied, other = EXPERIMENTS[kind]()
    arms = []
    for function, shapes in ((program, given), (remedied, other)):
        specs = [jax.ShapeDtypeStruct(*each, sharding=one or None) for each in shapes]
        arms.append((function if hasattr(function, "trace") else jax.jit(function), specs))
    if EXPERIMENTS[kind] not in CALLED:
        measure, act = "build_s", build_s
    elif one:
        measure, act = (
            "flops",
            lambda jitted, specs: analysis(jitted.lower(*specs).compile())["flops"],
        )
    else:
        measure, act = "call_s", call_s
        arms = [
            (jitted.lower(*specs).compile(), [jnp.ones(each.shape, each.dtype) for each in specs])
            for jitted, specs in arms
        ]
    turns = [[act(*arm) for arm in arms] for _ in range(ROUNDS)]
    before, after = map(min, zip(*turns, strict=True))
    return Experiment(kind, place.name, jax.__version__, measure, round(before, 5), round(after, 5))


def main():
    given = options(__doc__, select=True, target=[], write=False, child=False)
    chosen = given.select or [*EXPERIMENTS]
    places = [targets.find(name) for name in given.target or TARGETS]
    if given.child:  # what each process does
        jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((8,), "float32")).compile()
        print(json.dumps([measured(*places, kind) for kind in chosen]))
        return
    rows = []
    for place in places:
        there = {"JAX_ENABLE_COMPILATION_CACHE": "0", "JAX_PLATFORMS": place.platforms}
        kinds = [one for one in chosen if place.family in FAMILIES.get(one, place.family)]
        words = (*kinds, "--target", place.name, "--child")
        rows += [
            Experiment(*row) for row in fresh(__spec__.name, *words, **there, **place.environment)
        ]
        for row in rows:
            if row.target == place.name:
                print(f"{row.kind:26} {row.target:10} {row.release:9} {row.measure:8} ", end="")
                print(f"{row.before:12g} {row.after:12g} {row.before / row.after:6.1f} times")
    if given.write:
        with open(FILE, encoding="utf-8", newline="") as file:
            stored = {tuple(row[:3]): row for row in csv.reader(file)}
        stored |= {row[:3]: [*map(str, row)] for row in rows}
        with open(FILE, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(sorted(stored.values()))


if __name__ == "__main__":
    main()
