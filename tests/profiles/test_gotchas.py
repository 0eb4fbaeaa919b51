"""What JAX's page on slow tracing and compilation warns of, and a library that recreates functions.

https://docs.jax.dev/en/latest/debugging/slow_tracing_compilation.html: each of its programs is
answered with its remedy, where that is one (a partial that is made at each call is built at each).
"""

import functools

import jax
import jax.numpy as jnp
import pytest

from harness.profiles.findings import findings
from harness.program.compiler.structure import structure
from tests.jaxhooks.recorded import profiled

X = jnp.ones(5)
WEIGHTS = {str(size): jnp.ones(size) for size in range(2, 6)}


def recreated(x):
    def custom_einsum(a, b):
        return jnp.einsum("...i,...i->...", a, b)

    return jax.jit(custom_einsum)(x, x)


def add_multiply(a, b, scale):
    return (a + b) * scale


def of_a_lambda(x):
    return jax.jit(lambda a, b: add_multiply(a, b, scale=2.0))(x, x)


def of_a_partial(x):
    return jax.jit(functools.partial(add_multiply, scale=2.0))(x, x)


@pytest.mark.parametrize(
    ("program", "name", "remedy"),
    [
        (recreated, "custom_einsum", "jit once"),
        (of_a_lambda, "<lambda>", "jit once"),
        (of_a_partial, "add_multiply", "partial once"),
    ],
)
def test_a_function_that_is_recreated_is_to_be_jitted_once(program, name, remedy):
    found = findings(profiled(lambda: [program(X) for _ in range(4)]))
    again = next(one for one in found if one.kind == "again")
    assert (again.cause.kind, again.count) == ("new function object", 3)
    assert (again.function.name, again.remedy.kind) == (name, remedy)


def quantize(x):
    scale = jnp.max(jnp.abs(x))
    return jnp.round(x * scale)


def test_a_map_over_a_tree_outside_jit_is_to_be_jitted_as_a_whole():
    small = findings(profiled(lambda: jax.tree.map(quantize, WEIGHTS)))[0]
    assert (small.kind, small.remedy.kind) == ("small", "jit tree map")
    assert (small.remedy.argument, small.sizes) == ("quantize", 0)


@jax.jit
def unrolled_loop(x):
    for _ in range(500):
        x = x + 1.0
    return x


def test_a_loop_that_is_unrolled_leads_to_its_line_and_copies():
    first = findings(profiled(lambda: unrolled_loop(X)))[0]
    assert (first.kind, first.remedy.kind, first.remedy.value) == (
        "first",
        "look inside",
        "unrolled_loop",
    )
    [loop] = structure(unrolled_loop.trace(X).jaxpr).causes
    code = unrolled_loop.__wrapped__.__code__
    assert (loop.kind, loop.count, loop.is_same) == ("loop", 500, True)
    assert (loop.place.function, loop.place.line) == (code.co_qualname, code.co_firstlineno + 2)


@pytest.mark.parametrize(
    ("given", "kind", "remedy", "value"),
    [
        ([jnp.ones(32), jnp.ones(7)], "shape", "pad", ""),
        ([jnp.ones(3), jnp.ones((2, 3))], "shape", "pad", "[None]"),
        ([jnp.ones(3), jnp.ones(3, "int32")], "dtype", "one dtype", "float32"),
    ],
)
def test_shapes_and_dtypes_that_vary_are_to_be_padded_and_to_be_one(given, kind, remedy, value):
    function = jax.jit(lambda batch: batch * 2)
    found = findings(profiled(lambda: [function(one) for one in given]))
    again = next(one for one in found if one.kind == "again")
    assert (again.cause.kind, again.cause.argument) == (kind, "batch")
    assert (again.remedy.kind, again.remedy.value) == (remedy, value)


LIBRARY = """
import jax

def cond(predicate, yes, no, *operands):
    return jax.lax.cond(predicate, lambda *given: yes(*given), lambda *given: no(*given), *operands)
"""


def test_branches_that_a_library_recreates_are_named_by_its_line_and_the_programs():
    """As flax's `nnx.cond` does (google/flax#5512)."""
    library = {}
    exec(compile(LIBRARY, "/x/site-packages/lifted/cond.py", "exec"), library)

    def run():
        for n in range(3):
            library["cond"](n % 2 == 0, jnp.sin, lambda x: x, X)

    loop = next(one for one in findings(profiled(run)) if one.kind == "loop")
    assert (loop.function.name, loop.count, loop.recreated) == ("cond", 3, True)
    assert (loop.caller, loop.within) == ("lifted", "lifted/cond.py:5")
    assert loop.sites[0].endswith(f"test_gotchas.py:{run.__code__.co_firstlineno + 2}")
    assert loop.remedy.kind == "jit library call"
