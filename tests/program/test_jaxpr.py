import jax
import jax.numpy as jnp
import pytest
from jax import lax

from harness.program.jaxpr import equations, opened

X = jax.ShapeDtypeStruct((8,), "float32")


def of(function, *arguments):
    return equations(jax.jit(lambda *given: function(*given)).trace(*(arguments or (X,))).jaxpr)


def test_a_jaxpr_counts_open_as_closed():
    closed = jax.jit(lambda x: lax.sin(x)).trace(X).jaxpr
    assert equations(closed) == equations(getattr(closed, "jaxpr", closed)) == 1


@jax.jit
def inner(x):
    return lax.sin(lax.cos(x))


@jax.custom_jvp
def own_jvp(x):
    return lax.sin(lax.cos(x))


own_jvp.defjvp(lambda primals, tangents: (own_jvp(*primals), tangents[0]))


@jax.custom_vjp
def own_vjp(x):
    return lax.sin(lax.cos(x))


own_vjp.defvjp(lambda x: (own_vjp(x), None), lambda _, g: (g,))


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: x, 0),
        (lambda x: lax.sin(lax.cos(x)), 2),
        (inner, 1 + 2),
        (own_jvp, 1 + 2),
        (own_vjp, 1 + 2),
        (jax.checkpoint(lambda x: lax.sin(lax.cos(x))), 1 + 2),
        (lambda x: lax.scan(lambda s, _: (lax.sin(s), None), x, length=2)[0], 1 + 1),
        (lambda x: lax.scan(lambda s, _: (lax.sin(s), None), x, length=2000)[0], 1 + 1),
        (lambda x: lax.while_loop(lambda v: lax.lt(v, 1.0), lax.sin, x), 1 + 1 + 1),
        # The index of the branch is converted and, from some release on, clamped.
        (lambda x: lax.cond(x > 0, lax.sin, lambda v: lax.cos(lax.tan(v)), x), (3 + 3, 4 + 3)),
    ],
)
def test_nested_jaxprs_count_with_the_equation_that_holds_them(function, count):
    found = of(function, jax.ShapeDtypeStruct((), "float32"))
    assert found in (count if isinstance(count, tuple) else (count,))


def test_a_nested_jaxpr_that_is_used_twice_counts_once():
    assert of(lambda x: inner(inner(x))) == 2 + 2
    assert of(lambda x: inner(inner(x)[:4])) > 2 + 2 + 1  # another shape is another jaxpr


def test_a_program_that_only_calls_another_is_opened():
    program = jax.jit(jax.jit(lambda x: jnp.sin(x) * 2)).trace(X).jaxpr
    assert [one.primitive.name for one in opened(program).jaxpr.eqns] == ["sin", "mul"]


def test_branches_and_tuples_of_jaxprs_are_found():
    def solve(a, b):
        return lax.custom_linear_solve(
            lambda v: a @ v, b, lambda f, v: f(jnp.sin(v)), symmetric=True
        )

    given = (jax.ShapeDtypeStruct((8, 8), "float32"), X)
    assert of(solve, *given) > of(lambda a, b: a @ jnp.sin(b), *given)
