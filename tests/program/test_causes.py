"""What makes a build slow is found with its kind, line and numbers, and nothing else is."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from harness.output.compile import cause_lines
from harness.program.compiler import inside as insides
from harness.program.compiler import recording
from harness.program.compiler.causes import CompileCause, causes, decoded
from harness.program.compiler.inside import Inside, Kernel, PassBranch, PassGroup
from harness.program.compiler.structure import encoded, structure
from harness.program.compiler.tree import FOLDING
from harness.program.compiler.variants import VARIANTS
from tools.compile_causes import EXPERIMENTS

VECTOR = jax.ShapeDtypeStruct((4,), "float32")
RAGGED = [jax.ShapeDtypeStruct(*each) for each in EXPERIMENTS["ragged dot"]()[1]]


def inside(kernels=(), folding_s=0.0):
    groups = [PassGroup(FOLDING, "", folding_s, folding_s)]
    tree = PassBranch("backend_compile_and_load", "rest", 1, 1.0, 0.25, 1.0)
    return Inside(1.0, 1.0, 0.5, groups, tree, list(kernels), {})


def found_in(function, *arguments):
    """Return the causes of one function: read from its jaxpr, as JSON, and judged."""
    jaxpr = jax.jit(function).trace(*arguments).jaxpr
    return causes(decoded(encoded(jaxpr)), inside(), 1.0)


def nothing(*xs):
    return jnp.tanh(xs[0]) + xs[1]


def loop(*xs):
    x = xs[0]
    for _ in range(20):
        x = jnp.sin(x) * 2
    return x


def growing(*xs):
    x = xs[0]
    for _ in range(10):
        x = jnp.concatenate([x, jnp.sin(x) * 2])
    return x


def with_sums(*xs):
    x = xs[0]
    for _ in range(10):
        x = x + jnp.sin(x) + jnp.cos(x) + x * x
    return x


def two_layers(*xs):
    return jax.grad(lambda x: jax.nn.gelu(jax.nn.gelu(x + xs[1]) + xs[2]).sum())(xs[0])


def unrolled(*xs):
    return jax.lax.fori_loop(0, 64, lambda i, x: jnp.cos(x) + 1, xs[0], unroll=16)


def sort(*xs):
    return jax.lax.sort(xs, num_keys=10)


def of_a_library(*xs):
    return functools.reduce(lambda y, _: jnp.cos(y) * 2, range(20), xs[0])


def switch(*xs):
    branches = [lambda x, by=by: jnp.sin(x) * by + jnp.cos(x) for by in range(20)]
    return jax.lax.switch(xs[0][0].astype(int), branches, xs[1])


def other_branches(*xs):
    branches = [lambda x, by=by: x if by < 5 else jnp.sin(x) for by in range(10)]
    return jax.lax.switch(xs[0][0].astype(int), branches, xs[1])


def few_branches(*xs):
    return jax.lax.switch(xs[0][0].astype(int), [jnp.sin, jnp.cos, jnp.tan], xs[1])


def associative(*xs):
    def combine(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    return jax.lax.associative_scan(combine, (jnp.tile(xs[0], 64), jnp.tile(xs[1], 64)))


@pytest.mark.parametrize(
    ("function", "line", "expected"),
    [
        (nothing, 0, None),
        (two_layers, 0, None),
        (few_branches, 0, None),
        (with_sums, 2, CompileCause("loop", count=10, equations=60, of=60)),
        (loop, 2, CompileCause("loop", count=20, equations=40, of=40)),
        (growing, 2, CompileCause("loop", count=10, equations=30, of=30, is_same=False)),
        (unrolled, 1, CompileCause("unrolled scan", count=16)),
        (sort, 1, CompileCause("sort", count=12, keys=10)),
        (of_a_library, 1, CompileCause("repeated", count=20, equations=40, of=40)),
        (switch, 2, CompileCause("switch", count=20)),
        (other_branches, 2, CompileCause("switch", count=10, is_same=False)),
        (associative, 4, CompileCause("associative scan", count=8)),
    ],
)
def test_what_is_written_many_times_is_found_with_its_line(function, line, expected):
    found = found_in(function, *[VECTOR] * 12)
    if expected is None:
        assert found == []
        return
    assert len(found) == 1, found
    [cause] = found
    assert cause.place[1:] == (__file__, function.__code__.co_firstlineno + line)
    if not expected.of:  # how many equations it has is JAX's affair
        assert cause.equations == 0 or cause.equations > 0.5 * cause.of
        expected.equations, expected.of = cause.equations, cause.of
    assert cause.measured.kind == expected.remedy  # of every cause there is an experiment
    expected.place, expected.measured = cause.place, cause.measured
    expected.is_verified = cause.is_verified
    assert cause == expected


def test_many_arguments_that_go_through_the_same_operations_are_one_cause():
    def update(tree, by):
        loss = jax.grad(lambda t: sum(jax.tree.leaves(jax.tree.map(jnp.sum, t))))(tree)
        return jax.tree.map(lambda p, g: p - by * jnp.tanh(g), tree, loss)

    def each_once(tree, by):
        return [jnp.concatenate(tree).sum() * by]

    tree = [VECTOR] * 200
    [cause] = found_in(update, tree, VECTOR)
    assert (cause.kind, cause.count) == ("leaves", 201)
    assert cause.equations > 0.9 * cause.of
    assert cause.place.file == __file__
    assert found_in(each_once, tree, VECTOR) == []


@pytest.mark.parametrize("wrap", [lambda value: value, jax.jit])
def test_a_function_that_a_library_traces_again_and_again_is_named(wrap):
    def value(p):
        h = jnp.tanh(p * 2)
        return jnp.sum(jnp.sin(h) * jnp.cos(h) * h)

    given = wrap(value)
    line_search = optax.scale_by_zoom_linesearch(max_linesearch_steps=15)

    def step(p, state):
        v, g = jax.value_and_grad(given)(p)
        updates, state = line_search.update(g, state, p, value=v, grad=g, value_fn=given)
        return updates

    [cause] = found_in(step, np.ones(4, "float32"), line_search.init(jnp.ones(4)))
    first = value.__code__.co_firstlineno
    assert (cause.kind, cause.place) == ("library", (value.__qualname__, __file__, first))
    assert cause.by.file.endswith("optax/_src/linesearch.py")
    assert cause.count >= 3


def test_what_a_loop_calls_through_a_library_is_the_loop():
    chain = optax.chain(optax.scale_by_adam())

    def steps(p):
        state = chain.init(p)
        for _ in range(10):
            updates, state = chain.update(jax.grad(lambda p: jnp.sum(jnp.sin(p) ** 2))(p), state, p)
            p = p + updates
        return p

    [cause] = found_in(steps, VECTOR)
    assert (cause.kind, cause.count) == ("loop", 10)


def test_what_most_of_the_program_consists_of_comes_first():
    kernel = Kernel("s.1", 0.3, 0.3, op_name="jit(f)/scatter-add", function="f", file="a", line=3)
    made = structure(jax.jit(loop).trace(VECTOR).jaxpr)
    assert [one.kind for one in causes(made, inside([kernel]), 1.0)] == ["loop", "kernels"]


def test_what_is_folded_in_a_function_that_is_called_has_its_line():
    @jax.jit
    def called(x, big):
        return x @ jnp.sort(big, axis=0)

    big = np.ones((4, 2**10), np.float32)
    made = structure(jax.jit(lambda x: called(x + 1, big)).trace(VECTOR).jaxpr)
    [cause] = causes(made, inside(folding_s=0.2), 1.0)
    line = called.__wrapped__.__code__.co_firstlineno + 2
    assert cause.place[1:] == (__file__, line)


def test_a_constant_of_a_function_that_is_called_is_one_and_tried_where_it_can_be():
    big = np.random.default_rng(0).random((4, 2**17), np.float32)
    inner = jax.jit(lambda x: x @ jnp.asarray(big))
    alone = jax.jit(inner).trace(VECTOR).jaxpr
    beside = jax.jit(lambda x: inner(x + 1) * 2).trace(VECTOR).jaxpr
    for jaxpr in (alone, beside):
        made = structure(jaxpr)
        assert made.constant_bytes // 2**21 == 1
        assert made.constant_place.file == __file__
        [cause] = causes(made, inside(), 1.0)
        assert cause.kind == "constants"
    assert [one.shape for one in VARIANTS["constants"](alone)[1]] == [big.shape, VECTOR.shape]
    assert VARIANTS["constants"](beside) == "nested"


INTEGERS = {"int8": 1, "uint8": 1, "int16": 1, "uint32": 1, "bool": 1, "int32": 0, "float32": 0}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_and_convolutions_of_integers_are_causes_of_slow_calls(dtype):
    def kinds(function, *shapes):
        given = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
        return [one.kind for one in structure(jax.jit(function).trace(*given).jaxpr).causes]

    product = ["integer product"] * INTEGERS[dtype]
    assert kinds(jax.lax.dot, (128, 128), (128, 128)) == product
    assert kinds(jax.lax.dot, (8, 8), (8, 8)) == []
    if dtype != "bool":
        image = (1, 16, 64, 64), (16, 16, 3, 3)
        convolution = [] if dtype == "float32" else ["integer convolution"]
        assert kinds(lambda a, b: jax.lax.conv(a, b, (1, 1), "SAME"), *image) == convolution


@pytest.mark.parametrize("simplified", [False, True])
def test_constants_folding_and_kernels_are_causes_where_they_cost(simplified):
    itself = Kernel("add_dynamic-update-slice_fusion", 0.3, 0.3, op_name="jit(f)/scatter")
    dear = Kernel("s.1", 0.3, 0.3, op_name="jit(f)/scatter-add", function="f", file="a.py", line=3)
    cheap = Kernel("s.2", 0.01, 0.01, op_name="jit(f)/sort", function="f", file="a.py", line=4)
    with jax.ensure_compile_time_eval():
        big = jnp.ones((4, 2**17))
    before = jax.config.jax_use_simplified_jaxpr_constants
    jax.config.update("jax_use_simplified_jaxpr_constants", simplified)
    try:
        made = structure(jax.jit(lambda x: x @ big).trace(VECTOR).jaxpr)
    finally:
        jax.config.update("jax_use_simplified_jaxpr_constants", before)
    found = causes(made, inside([itself, dear, cheap], folding_s=0.2), 1.0)
    costs = [(one.kind, one.cost_s) for one in found]
    assert costs == [("kernels", 0.3), ("constants", 0.25), ("folding", 0.2)]
    assert found[0].place == ("f", "a.py", 3)
    assert found[1].size_bytes == 2**21


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "integer product" else pytest.param(kind, marks=pytest.mark.nightly)
        for kind in EXPERIMENTS
        if kind != "kernels of scatter"  # XLA:CPU names no such kernel
    ],
)
def test_each_experiment_has_its_cause_when_it_is_built_and_not_with_the_remedy(kind, monkeypatch):
    jax.jit(lambda x: x + 1).lower(VECTOR).compile()
    codes = []
    program, given, remedied, other = EXPERIMENTS[kind]()
    for function, shapes in ((program, given), (remedied, other)):
        if kind == "dumps":
            monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x" if function is program else "")
            function = remedied
        jax.clear_caches()
        traced = jax.jit(function).trace(*(jax.ShapeDtypeStruct(*each) for each in shapes))
        lowered = traced.lower()
        built = insides.inside(recording.recorded(lowered.compile), "")
        every = causes(decoded(encoded(traced.jaxpr)), built, built.wall_s)
        codes.append([one.remedy for one in every])
        if function is program or kind == "dumps":
            words = [line for one in every for line in cause_lines(one, built)]
            assert len(words) == 3 * len(every)
            assert all(one.measured for one in every)
    assert kind in codes[0]
    assert kind not in codes[1]


@pytest.mark.parametrize(
    ("target", "is_verified", "words"), [("cpu", True, "Measured with"), ("gpu", False, "Not ver")]
)
def test_a_remedy_is_verified_where_it_was_measured(target, is_verified, words):
    made = structure(jax.jit(EXPERIMENTS["ragged dot"]()[0]).trace(*RAGGED).jaxpr)
    made.release = "0.10.2"
    [cause] = causes(made, inside(), 1.0, target)
    assert (cause.kind, cause.count, cause.is_verified) == ("ragged dot", 16, is_verified)
    assert words in [*cause_lines(cause, inside())][2]
    assert causes(made, inside(), 1.0, "tpu:v5e") == []  # there it is a kernel
