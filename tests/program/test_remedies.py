"""What makes compiles slow is found with its line; written otherwise it gives the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harness.program.compiler.inside import Inside, Kernel, PassBranch, PassGroup
from harness.program.compiler.remedies import (
    computed_before,
    constants_as_arguments,
    not_unrolled,
    remedies,
)
from harness.program.compiler.rolled import rolled
from harness.program.compiler.tree import FOLDING
from harness.program.jaxpr import every

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 8), np.float32)
LAYERS = 0.1 * RNG.standard_normal((12, 8, 8), np.float32)
BIG = RNG.standard_normal((4, 8), np.float32)


def block(x, w):
    y = jax.nn.gelu(x @ w) + jax.nn.relu(x)
    return x + y - y.mean()


def forward(x, layers):
    for number, w in enumerate(layers):
        x = block(x, w) * number
    return x


def step(x, layers):
    loss, gradient = jax.value_and_grad(lambda w: (forward(x, w) ** 2).sum())(layers)
    return loss, [w - 0.1 * g for w, g in zip(layers, gradient, strict=True)]


def last_is_other(x, layers):
    for w in layers:
        x = block(x, w)
    return jnp.sort(x @ layers[-1])


def sorted_values(results):
    return np.sort(np.concatenate([np.ravel(one) for one in jax.tree.leaves(results)]))


def primitives(function, *arguments):
    return [one.primitive.name for one in every(jax.jit(function).trace(*arguments).jaxpr)]


@pytest.mark.parametrize("function", [forward, step, last_is_other])
def test_layers_are_rolled_into_scans_with_the_same_results(function):
    layers = list(LAYERS)
    program, shapes = rolled(jax.jit(function).trace(X, layers).jaxpr)
    # The first layer of a gradient is another one: nobody asks for that of x.
    each = {(4, 8): X, (8, 8): LAYERS[0], (11, 8, 8): LAYERS[1:], (12, 8, 8): LAYERS}
    given = [each[one.shape] for one in shapes]
    made = jax.jit(program)(*given)
    assert sorted_values(made) == pytest.approx(
        sorted_values(function(X, layers)), rel=1e-4, abs=1e-4
    )
    named = primitives(program, *given)
    assert "scan" in named
    assert len(named) < 0.5 * len(primitives(function, X, layers))


@pytest.mark.nightly
def test_layers_in_a_function_that_is_called_are_rolled_as_well():
    called = jax.jit(forward)

    def function(x, layers):
        x = x + 1
        return jax.grad(lambda w: (called(x, w) ** 2).sum())(layers)

    program, shapes = rolled(jax.jit(function).trace(X, list(LAYERS)).jaxpr)
    each = {(4, 8): X, (8, 8): LAYERS[0], (11, 8, 8): LAYERS[1:], (12, 8, 8): LAYERS}
    given = [each[one.shape] for one in shapes]
    expected = sorted_values(function(X, list(LAYERS)))
    assert sorted_values(jax.jit(program)(*given)) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert "scan" in primitives(program, *given)


@pytest.mark.parametrize("inner", [lambda x: x, jax.checkpoint])
def test_what_turns_leave_for_the_gradient_stays_one_array(inner):
    once = inner(lambda x: jnp.sin(jnp.cos(x) * x[::-1]))

    def function(x):
        def loss(x):
            for _ in range(12):
                x = once(x)
            return x.sum()

        return jax.grad(loss)(x)

    program, _ = rolled(jax.jit(function).trace(X).jaxpr)
    assert "stack" not in (named := primitives(program, X))
    assert named.count("slice") + named.count("concatenate") < 10
    made = np.asarray(jax.jit(program)(X)[0])
    assert made == pytest.approx(np.asarray(function(X)), rel=1e-4, abs=1e-5)


def test_the_last_turn_is_given_alone_and_all_turns_as_one_array():
    def function(x, with_all):
        made = []
        for number in range(12):
            made.append(x := jnp.sin(x) * number)
        return made if with_all else made[-1]

    for with_all, size in ((False, (4, 8)), (True, (12, 4, 8))):
        program, shapes = rolled(jax.jit(function, static_argnums=1).trace(X, with_all).jaxpr)
        assert [one.shape for one in jax.eval_shape(program, *shapes)] == [size]


@pytest.mark.nightly
def test_a_loop_over_what_the_program_has_split_is_rolled():
    def function(key, x):
        for own in jax.random.split(key, 12):
            x = jnp.tanh(x + jax.random.normal(own, x.shape))
        return x

    key = jax.random.key(0)
    program, _ = rolled(jax.jit(function).trace(key, X).jaxpr)
    [made] = jax.jit(program)(key, X)
    assert np.asarray(made) == pytest.approx(np.asarray(function(key, X)), rel=1e-4, abs=1e-5)
    assert "scan" in primitives(program, key, X)


def test_parts_of_one_array_are_taken_from_it_as_a_whole():
    def indexed(x, layers):
        for number in range(12):
            x = block(x, layers[number])
        return x

    program, shapes = rolled(jax.jit(indexed).trace(X, LAYERS).jaxpr)
    assert [one.shape for one in shapes] == [(4, 8), (12, 8, 8)]
    made, expected = jax.jit(program)(X, LAYERS)[0], indexed(X, LAYERS)
    assert np.asarray(made) == pytest.approx(np.asarray(expected), rel=1e-4, abs=1e-5)


def grows(x):
    for n in range(12):
        x = jnp.concatenate([x, x[:1] * n])
    return x


def skips(x):
    before = [x, x]
    for _ in range(12):
        before.append(jnp.sin(before[-1]) + before[-2] * before[0])
    return before[-1]


def few(x):
    for _ in range(7):
        x = jnp.sin(x) + 1
    return x


def reaches(x):
    before = [x] * 5
    for _ in range(12):
        before.append(jnp.sin(before[-1]) + before[-4])
    return before[-1]


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (grows, "no equal turns follow one another"),
        (few, "no equal turns follow one another"),
        (jnp.tanh, "no equal turns follow one another"),
        (reaches, "a turn takes more than what the turn before it made"),
    ],
)
def test_what_is_no_loop_stays_as_it_is_and_says_why(function, says):
    assert says in rolled(jax.jit(function).trace(X).jaxpr)


def test_what_reaches_further_back_than_a_turn_is_right_or_left():
    made = rolled(jax.jit(skips).trace(X).jaxpr)
    if not isinstance(made, str):
        result, expected = np.asarray(jax.jit(made[0])(X)[0]), np.asarray(skips(X))
        assert result == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_scans_are_no_longer_unrolled_wherever_they_stand():
    def inner(x):
        return jax.lax.scan(lambda x, _: (jnp.cos(x), None), x, None, length=32, unroll=8)[0]

    def function(x):
        return jax.lax.cond(x.sum() > 0, jax.jit(inner), lambda x: x, x)

    program, shapes = not_unrolled(jax.jit(function).trace(X).jaxpr)
    assert np.asarray(jax.jit(program)(X)[0]) == pytest.approx(np.asarray(function(X)))
    scans = [
        one.params["unroll"]
        for one in every(jax.jit(program).trace(*shapes).jaxpr)
        if one.primitive.name == "scan"
    ]
    assert scans == [1]


def test_constants_and_what_depends_on_no_argument_become_arguments():
    def function(x):
        return x + jnp.cumsum(jnp.asarray(BIG), axis=0) * jnp.arange(8.0)

    traced = jax.jit(function).trace(X)
    for variant, left in ((constants_as_arguments, True), (computed_before, False)):
        program, shapes = variant(traced.jaxpr)
        made = jax.jit(program).trace(*shapes)
        assert len(shapes) > 1
        assert not made.jaxpr.consts
        assert ("iota" in [one.primitive.name for one in every(made.jaxpr)]) == left


# --- what is found -------------------------------------------------------------------------------


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


def inside(kernels=(), folding_s=0.0):
    groups = [PassGroup(FOLDING, "", folding_s, folding_s)]
    tree = PassBranch("backend_compile_and_load", "rest", 1, 1.0, 0.25, 1.0)
    return Inside(1.0, 1.0, 0.5, groups, tree, list(kernels), {})


@pytest.mark.parametrize(
    ("function", "line", "says"),
    [
        (nothing, 0, None),
        (with_sums, 2, "60 of 60 equations stand there 10 times over"),
        (two_layers, 0, None),
        (loop, 2, "40 of 40 equations stand there 20 times over"),
        (growing, 2, "30 of 30 equations stand there 10 times over, of other shapes"),
        (unrolled, 1, "a scan is unrolled by 16"),
        (sort, 1, "a sort of 12 arrays by 10 of them"),
    ],
)
def test_what_is_written_out_many_times_is_found_with_its_line(function, line, says):
    specs = [jax.ShapeDtypeStruct((4,), "float32")] * 12
    found = remedies(jax.jit(function).trace(*specs).jaxpr, inside())
    found = [one.remedy for one in found]
    assert [one.cause for one in found] == ([says] if says else [])
    place = f"{function.__code__.co_qualname} {__file__}:{function.__code__.co_firstlineno + line}"
    assert all(one.line == place and one.saved_s is None for one in found)


def test_what_most_of_the_program_stands_in_comes_first():
    kernel = Kernel("s.1", 0.3, 0.3, op_name="jit(f)/scatter-add", function="f", file="a", line=3)
    traced = jax.jit(loop).trace(jax.ShapeDtypeStruct((4,), "float32"))
    found = [one.remedy.cause for one in remedies(traced.jaxpr, inside([kernel]))]
    assert found == ["40 of 40 equations stand there 20 times over", "kernels of scatter"]


def test_what_is_folded_in_a_function_that_is_called_has_its_line():
    @jax.jit
    def called(x, big):
        return x @ jnp.sort(big, axis=0)

    big = np.ones((4, 2**10), np.float32)
    traced = jax.jit(lambda x: called(x + 1, big)).trace(jax.ShapeDtypeStruct((4,), "float32"))
    [found] = remedies(traced.jaxpr, inside(folding_s=0.2))
    line = called.__wrapped__.__code__.co_firstlineno + 2
    assert found.remedy.line.endswith(f"called {__file__}:{line}")


def test_constants_folding_and_kernels_are_told_where_they_cost():
    itself = Kernel("add_dynamic-update-slice_fusion", 0.3, 0.3, op_name="jit(f)/scatter")
    dear = Kernel("s.1", 0.3, 0.3, op_name="jit(f)/scatter-add", function="f", file="a.py", line=3)
    cheap = Kernel("s.2", 0.01, 0.01, op_name="jit(f)/sort", function="f", file="a.py", line=4)
    with jax.ensure_compile_time_eval():
        big = jnp.ones((4, 2**17))
    traced = jax.jit(lambda x: x @ big).trace(jax.ShapeDtypeStruct((4,), "float32"))
    found = remedies(traced.jaxpr, inside([itself, dear, cheap], folding_s=0.2))
    told = [(one.remedy.cause.partition(":")[0], one.remedy.cost_s) for one in found]
    assert told == [
        ("kernels of scatter", 0.3),
        ("constants of 2 MB are part of the program", 0.25),
        ("constant folding", 0.2),
    ]
    assert [one.variant is not None for one in found] == [False, True, True]
    assert found[0].remedy.line == "f a.py:3"
