"""Loops of Python's that write a program out are found in the source, and nothing else is."""

import functools

import jax
import jax.numpy as jnp
import pytest

from harness.program.compiler.loops import placed, written_out

X = jax.ShapeDtypeStruct((16,), "float32")


def found(function):
    """Return what is written out: equations, turns, the line in the function, and two marks."""
    equations = list(placed(jax.jit(function).trace(X).jaxpr))
    first = function.__code__.co_firstlineno
    return [
        (one.equations, one.turns, one.place[2] - first, one.in_loop, one.same_shapes)
        for one in written_out(equations, 0.1 * len(equations), 0.5 * len(equations))
    ]


def two_loops(x):
    for _ in range(10):
        y = jnp.sin(x)
        x = y * 2
    left = 11
    while left := left - 1:
        x = jnp.exp(x) - 1
    return x


@jax.jit
def block(x):
    return jnp.tanh(x) * 3


def of_a_jitted_body(x):
    for _ in range(9):
        x = block(x)
    return x


def of_a_loop_inside(x):
    for number in range(9):
        x = jnp.exp(x) * number
        for _ in range(3):
            x = jnp.sin(x) * 2
    return x


def halved(x):
    for _ in range(2):
        x = jnp.sin(x) / 2
    return x


def of_a_loop_that_makes_nothing_between(x):
    for number in range(10):
        x = x * number - 1
        left, right = (halved(x) for _ in range(2))
        x = left + right
    return x


def of_two_loops_at_once(x):
    for number in range(9):
        x = jnp.exp(x) * number
        for _ in range(10):
            x = jnp.sin(x) * 2
    return x


def comprehension(x):
    return sum([jnp.sin(x + number) for number in range(8)])


def of_other_shapes(x):
    for number in range(1, 12):
        x = x.at[:number].add(jnp.sin(x[:number]))
    return x


def of_a_library(x):
    return functools.reduce(lambda y, _: jnp.cos(y) * 2, range(20), x)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (two_loops, [(20, 10, 1, True, True), (20, 10, 5, True, True)]),
        (of_a_jitted_body, [(27, 9, 1, True, True)]),
        (of_a_loop_inside, [(72, 9, 1, True, True)]),
        (of_a_loop_that_makes_nothing_between, [(110, 10, 1, True, True)]),
        (of_two_loops_at_once, [(180, 90, 3, True, True)]),
        (of_a_library, [(40, 20, 1, False, True)]),
    ],
)
def test_a_loop_is_told_with_its_line_and_turns(function, expected):
    assert found(function) == expected


def test_a_comprehension_is_a_loop():
    ((_, turns, line, in_loop, _),) = found(comprehension)
    assert (turns, line, in_loop) == (8, 1, True)


def test_turns_of_other_shapes_are_told_as_such():
    ((_, turns, line, in_loop, same),) = found(of_other_shapes)
    assert (turns, line, in_loop, same) == (11, 1, True, False)


def few_turns(x):
    for _ in range(7):
        x = jnp.sin(x) * 2
    return x


def layers(x):
    for weight in (2.0, 3.0):
        x = jax.nn.gelu(jax.nn.gelu(x * weight) * weight)
    return x


def slope_of_layers(x):
    return jax.grad(lambda y: layers(y).sum())(x)


def many_calls(x):
    x = block(block(block(block(x))))
    return block(block(block(block(x))))


def by_hand(x):
    return x * x * x * x * x * x * x * x * x * x * x


def scanned(x):
    return jax.lax.scan(lambda y, _: (slope_of_layers(y), None), x, None, length=50)[0]


@pytest.mark.parametrize(
    "function", [few_turns, layers, slope_of_layers, many_calls, by_hand, scanned]
)
def test_what_no_loop_has_written_is_not_told(function):
    assert found(function) == []


def test_an_equation_of_what_jax_traced_before_has_the_line_of_its_call():
    def rows(x):
        return jnp.unique(x.reshape(4, 4), axis=0, size=4)

    equations = placed(jax.jit(rows).trace(X).jaxpr)
    (line,) = {one.path[-1] for one in equations if one.equation.primitive.name == "sort"}
    assert line[1:] == (__file__, rows.__code__.co_firstlineno + 1)


LOOPS_THAT_COME_FIRST = """
def one_line(x):
    for n in range(10): x = jnp.sin(x) * n
    return x


def comprehension(x):
    every = [jnp.sin(x) * n for n in range(10)]
    return sum(every)
"""


@pytest.mark.parametrize("name", ["one_line", "comprehension"])
def test_a_loop_on_the_first_line_of_a_function_is_one(tmp_path, name):
    (tmp_path / "first.py").write_text(LOOPS_THAT_COME_FIRST)
    code = compile(LOOPS_THAT_COME_FIRST, str(tmp_path / "first.py"), "exec")
    names = {"jnp": jnp}
    exec(code, names)
    [_, turns, line, in_loop, _] = found(names[name])[0]
    assert (turns, line, in_loop) == (10, 1, True)


def of_itself(x, depth):
    return x if depth == 0 else of_itself(jnp.sin(x) * 2, depth - 1)


def recursive(x):
    return of_itself(x, 30)


def test_what_a_function_does_by_calling_itself_is_written_out_as_often():
    [(_, turns, _, in_loop, same)] = found(recursive)
    assert (turns >= 28, in_loop, same) == (True, False, True)
