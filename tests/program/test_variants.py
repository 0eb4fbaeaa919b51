"""A program written as a remedy has it gives the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harness.program.compiler.rolled import TAKES_MORE, UNEQUAL, rolled
from harness.program.compiler.variants import (
    computed_before,
    constants_as_arguments,
    not_unrolled,
)
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
    ("function", "code"),
    [(grows, UNEQUAL), (few, UNEQUAL), (jnp.tanh, UNEQUAL), (reaches, TAKES_MORE)],
)
def test_what_is_no_loop_stays_as_it_is_and_says_why(function, code):
    assert rolled(jax.jit(function).trace(X).jaxpr) == code


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
