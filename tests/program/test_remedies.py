"""What makes compiles slow is found in the program, with its line, and nothing where it is fine."""

import jax
import jax.numpy as jnp
import pytest

from harness.program.compiler.inside import Inside, Kernel, PassBranch, PassGroup
from harness.program.compiler.remedies import remedies
from harness.program.compiler.tree import FOLDING


def nothing(*xs):
    return jnp.tanh(xs[0]) + xs[1]


def loop(*xs):
    x = xs[0]
    for _ in range(20):
        x = jnp.sin(x) * 2
    return x


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
        (loop, 3, "40 of 40 equations stand there 20 times over"),
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


def test_constants_folding_and_kernels_are_told_where_they_cost():
    dear = Kernel("s.1", 0.3, 0.3, op_name="jit(f)/scatter-add", function="f", file="a.py", line=3)
    cheap = Kernel("s.2", 0.01, 0.01, op_name="jit(f)/sort", function="f", file="a.py", line=4)
    with jax.ensure_compile_time_eval():
        big = jnp.ones((4, 2**17))
    traced = jax.jit(lambda x: x @ big).trace(jax.ShapeDtypeStruct((4,), "float32"))
    found = remedies(traced.jaxpr, inside([dear, cheap], folding_s=0.2))
    told = [(one.remedy.cause.partition(":")[0], one.remedy.cost_s) for one in found]
    assert told == [
        ("constants of 2 MB are part of the program", 0.45),
        ("kernels of scatter", 0.3),
        ("constant folding", 0.2),
    ]
    assert [one.variant is not None for one in found] == [True, False, True]
    assert found[1].remedy.line == "f a.py:3"
