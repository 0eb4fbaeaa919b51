"""Which function: made anew, wrapped, bound, derived; and what is the same for JAX."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from tests.profiles.causes.programs import builds

ONES = np.ones((4, 3), np.float32)


def cube(x):
    return x**3


@builds("<lambda>: first", "<lambda>: new function object <lambda>")
def lambda_in_a_loop():
    for _ in range(2):
        jax.jit(lambda x: x * 2)(ONES)


@builds("step: first", "step: new function object step", "step: new function object step")
def def_in_a_loop():
    for _ in range(3):

        @jax.jit
        def step(x):
            return x * 2

        step(ONES)
        step(ONES)


@builds("cube: first")
def jit_in_a_loop():
    for _ in range(3):
        jax.jit(cube)(ONES)


@builds("power: first", "power: new function object power")
def partial_in_a_loop():
    def power(x, n):
        return x**n

    for _ in range(2):
        jax.jit(functools.partial(power, n=2))(ONES)


@builds("predict: first", "predict: new function object predict")
def bound_method():
    class Model:
        def predict(self, x):
            return x * 2

    model = Model()
    for _ in range(2):
        jax.jit(model.predict)(ONES)


@builds("<unnamed function>: first")
def callable_object():
    class Model:
        def __call__(self, x):
            return x * 2

    model = Model()
    for _ in range(2):
        jax.jit(model)(ONES)


@builds("cube: first", "cube: new function object cube")
def wraps_in_a_loop():
    def logged(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(x)

        return wrapper

    for _ in range(2):
        jax.jit(logged(cube))(ONES)


@builds("total: first", "total: first", "total: new function object total")
def gradient_in_a_loop():
    def total(x):
        return (x**2).sum()

    jax.jit(total)(ONES)
    for _ in range(2):
        jax.jit(jax.grad(total))(ONES)


@builds("cube: first", "cube: first", "cube: new function object cube")
def vmap_in_a_loop():
    jax.jit(cube)(ONES)
    for _ in range(2):
        jax.jit(jax.vmap(cube))(ONES)


@builds("<lambda>: first", "<lambda>: first")
def two_lambdas_on_a_line():
    one, other = jax.jit(lambda x: x * 2), jax.jit(lambda x: x * 3)
    one(ONES)
    other(ONES)


@builds("<lambda>: first", "<lambda>: shape x")
def one_lambda_kept():
    double = jax.jit(lambda x: x * 2)
    for x in (ONES, ONES[0], ONES, ONES[0]):
        double(x)


@builds("loss: first", "loss: first", "loss: shape x", "loss: shape x")
def gradient_of_a_jitted_function():
    @jax.jit
    def loss(x):
        return (x**2).sum()

    for x in (ONES, ONES, ONES[0], ONES[0]):
        jax.grad(loss)(x)


@builds(
    "<lambda>: first",
    "<lambda>: first",
    "<lambda>: new function object <lambda>",
    "<lambda>: new function object <lambda>",
)
def gradient_of_a_new_jitted_lambda():
    for _ in range(2):
        jax.grad(jax.jit(lambda x: (x**2).sum()))(ONES)


@builds("double: first", "double: first", "double: shape x")
def vmap_of_a_jitted_function():
    @jax.jit
    def double(x):
        return x * 2

    double(ONES[0])
    for x in (ONES, ONES, np.ones((2, 5), np.float32)):
        jax.vmap(double)(x)


@builds("outer: first", "outer: shape x")
def jit_inside_jit():
    @jax.jit
    def inner(x):
        return x * 2

    @jax.jit
    def outer(x):
        return inner(x) + 1

    outer(ONES)
    outer(ONES[0])
    outer(ONES)


@builds("outer: first", "inner: first", "inner: shape x")
def traced_inside_another_first():
    @jax.jit
    def inner(x):
        return x * 2

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
    @jax.jit
    def double(x):
        return x * 2

    jax.lax.cond(True, double, lambda x: x, jnp.ones(3))
    double(jnp.ones(3))


@builds("rollout: first", "rollout: shape xs")
def scan_inside_jit():
    @jax.jit
    def rollout(xs):
        return jax.lax.scan(lambda carry, x: (carry + x, x), jnp.float32(0), xs)

    rollout(np.ones(3, np.float32))
    rollout(np.ones(4, np.float32))


@builds(
    "broadcast_in_dim: first",
    "broadcast_in_dim: shape shape",
    "broadcast_in_dim: shape shape",
    operations=True,
)
def ones_in_a_loop():
    for n in (2, 3, 4, 2):
        jax.lax.broadcast(np.float32(1), (n,))


@builds("add: first", "add: shape x", operations=True)
def eager_sum():
    x = jax.device_put(ONES)
    for value in (x, x, jax.device_put(ONES[0])):
        jnp.add(value, value)


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
    class Model:
        def predict(self, x):
            return x * 2

    model = Model()
    one, other = jax.jit(model.predict), jax.jit(model.predict)
    one(ONES)
    other(ONES)
    other(ONES[0])


@builds("step: first", "step: shape flat_args[0]")
def pmap():
    @jax.pmap
    def step(x):
        return x * 2

    for x in (ONES[:2], ONES[:2, 0], ONES[:2]):
        step(x)


@builds("step: first", "step: new function object step")
def pmap_in_a_loop():
    for _ in range(2):

        @jax.pmap
        def step(x):
            return x * 2

        step(ONES[:2])


@builds()
def shard_map_outside_jit():
    """JAX builds all of it anew in each call; its functions, and none of them unexplained."""
    mesh = jax.make_mesh((2,), ("i",), axis_types=(AxisType.Auto,))
    sharded = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    for _ in range(2):
        sharded(ONES)


@builds("cube: first", "cube: first", "call: first", "call: new function object call")
def exported():
    program = jax.export.export(jax.jit(cube))(jax.ShapeDtypeStruct((4, 3), np.float32))
    for _ in range(2):
        jax.jit(program.call)(ONES)


@builds("norm: first", "norm: shape x", "dot: first", "dot: shape a")
def functions_of_jax_that_the_program_jits():
    for function in (jax.jit(jnp.linalg.norm), jax.jit(jax.vmap(jnp.dot))):
        for rows in (2, 3, 2):
            function(*[np.ones((rows, 3), np.float32)] * (1 + (function.__name__ == "dot")))
