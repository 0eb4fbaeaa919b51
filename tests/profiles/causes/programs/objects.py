"""Which function: made anew, wrapped, bound, derived; and what is the same for JAX."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from tests.profiles.causes.programs import builds, declare

ONES = np.ones((4, 3), np.float32)


def double(x):
    return x * 2


def total(x):
    return (x**2).sum()


def power(x, n):
    return x**n


def wrapped():
    @functools.wraps(double)
    def wrapper(x):
        return double(x)

    return wrapper


class Model:
    def __call__(self, x):
        return x * 2

    def predict(self, x):
        return x * 2


MODEL = Model()


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
anew("bound_method", lambda: jax.jit(MODEL.predict), again("predict"))
anew("callable_object", lambda: jax.jit(MODEL), again("<unnamed function>", 1, 0))
anew("wraps_in_a_loop", lambda: jax.jit(wrapped()), again("double"))
anew("gradient_in_a_loop", lambda: jax.jit(jax.grad(total)), again("total", 2), before=total)
anew("vmap_in_a_loop", lambda: jax.jit(jax.vmap(double)), again("double", 2), before=double)
anew(
    "gradient_of_a_new_jitted_lambda",
    lambda: jax.grad(jax.jit(lambda x: (x**2).sum())),
    again("<lambda>", 2, 2),
)


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


@builds("outer: first", "outer: static value inner")
def static_function_made_anew():
    outer = jax.jit(lambda inner, x: inner(x), static_argnames="inner")
    outer.__wrapped__.__name__ = "outer"
    for _ in range(2):
        outer(inner=lambda x: x + 1, x=ONES)


@builds("exp: first", "exp: first", "exp: first", operations=True)
def operation_under_a_transformation_first():
    x = jax.device_put(np.float32(1))
    jax.vjp(jnp.exp, x)
    jax.vmap(jnp.exp)(np.ones(1, np.float32))
    jnp.exp(x)


@builds("add: first", "add: committed x", operations=True)
def operation_on_a_committed_array():
    x = jax.device_put(ONES)
    jnp.add(x, x)
    x = jax.device_put(x, jax.devices()[0])
    jnp.add(x, x)


@builds("predict: first", "predict: shape x")
def equal_bound_methods():
    one, other = jax.jit(MODEL.predict), jax.jit(MODEL.predict)
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
    program = jax.export.export(jax.jit(double))(jax.ShapeDtypeStruct((4, 3), np.float32))
    for _ in range(2):
        jax.jit(program.call)(ONES)


@builds("norm: first", "norm: shape x", "dot: first", "dot: shape a")
def functions_of_jax_that_the_program_jits():
    for function in (jax.jit(jnp.linalg.norm), jax.jit(jax.vmap(jnp.dot))):
        for rows in (2, 3, 2):
            function(*[np.ones((rows, 3), np.float32)] * (1 + (function.__name__ == "dot")))
