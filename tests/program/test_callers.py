"""Who makes Python's calls while JAX traces and lowers: the lines of the user's, and equations."""

import math
import sys

import jax
import jax.numpy as jnp
import pytest

from harness.program.calls import calls
from harness.program.compiler import callers

FILE = __file__


def layer(w, x):
    y = jnp.tanh(x @ w)
    return y / (1 + jnp.linalg.norm(y))


def body(x, w):
    return layer(w, x), None


def loss(ws, x):
    first = ws[0]
    for _ in range(3):
        x = layer(first, x)
    x, _ = jax.lax.scan(body, x, ws)
    return jnp.sort(x).sum()


OF_LAYER, OF_LOSS = (function.__code__.co_firstlineno for function in (layer, loss))
LINES = {"tanh": OF_LAYER + 1, "norm": OF_LAYER + 2}
LINES |= {"unrolled": OF_LOSS + 3, "scan": OF_LOSS + 4, "sort": OF_LOSS + 5}


@pytest.fixture(scope="module")
def counted():
    """Return the trees of trace and lower, and the calls of each as they are counted alone."""
    found = {}
    arguments = jax.ShapeDtypeStruct((5, 8, 8), "float32"), jax.ShapeDtypeStruct((4, 8), "float32")
    kinds = {
        "alone": lambda name, step: calls(step),
        "tree": lambda name, step: callers.callers(name, step, 0.5),
        "again": lambda name, step: callers.callers(name, step, 0.25),
    }
    for kind, count in [("first", kinds["alone"]), *kinds.items()]:
        jax.clear_caches()
        jitted, traced = jax.jit(jax.grad(loss)), []
        found["trace", kind] = count(
            "trace", lambda to=traced, of=jitted: to.append(of.trace(*arguments))
        )
        found["lower", kind] = count("lower", traced[0].lower)
    return found


def everything(tree):
    yield tree
    for each in tree.inside:
        yield from everything(each)


def sums(tree, kind):
    return {(one.name, one.line): one for one in getattr(callers, kind)(tree)}


@pytest.mark.parametrize("stage", ["trace", "lower"])
def test_every_call_and_moment_has_one_place(counted, stage):
    tree, again = counted[stage, "tree"], counted[stage, "again"]
    assert tree.calls == sum(one.own_calls for one in everything(tree))
    assert (tree.name, tree.count) == (stage, 1)
    for other in (again.calls, counted[stage, "alone"]):
        assert math.isclose(tree.calls, other, rel_tol=0.001)  # JAX has remembered some more
    assert [(one.name, one.line) for one in callers.lines(tree)] == [
        (one.name, one.line) for one in callers.lines(again)
    ]
    assert math.isclose(tree.wall_s, 0.5)
    assert math.isclose(sum(one.own_wall_s for one in everything(again)), 0.25)
    assert all(one.own_wall_s >= 0 for one in everything(tree))


def test_lines_are_the_users_own_and_total_backwards_too(counted):
    traced = sums(counted["trace", "tree"], "lines")
    assert {one.file for one in traced.values()} == {FILE}
    unrolled, scan = traced["loss", LINES["unrolled"]], traced["loss", LINES["scan"]]
    tanh, norm = traced["layer", LINES["tanh"]], traced["layer", LINES["norm"]]
    assert unrolled.own_calls < 50 < unrolled.calls
    assert unrolled.calls + scan.calls > tanh.own_calls + norm.own_calls > unrolled.calls
    functions = sums(counted["trace", "tree"], "functions")
    assert functions["loss", 0].calls > functions["body", 0].calls > 0
    assert functions["layer", 0].own_calls == tanh.own_calls + norm.own_calls
    own = sum(one.own_calls for one in traced.values())
    assert own > 0.8 * counted["trace", "tree"].calls


def test_what_lowering_calls_is_of_primitives_and_their_lines(counted):
    tree = counted["lower", "tree"]
    primitives = sums(tree, "primitives")
    assert primitives["scan", 0].calls > primitives["scan", 0].own_calls > 0
    assert primitives["dot_general", 0].calls < primitives["scan", 0].calls
    lines = sums(tree, "lines")
    assert {one.file for one in lines.values()} == {FILE}
    assert lines["loss", LINES["sort"]].own_calls >= primitives["sort", 0].own_calls
    assert lines["loss", LINES["scan"]].calls > primitives["scan", 0].own_calls


def test_another_profiler_stays_and_what_is_raised_goes_on():
    seen = []
    sys.setprofile(lambda *event: seen.append(event))
    try:
        with pytest.raises(ZeroDivisionError):
            callers.callers("trace", lambda: 1 / 0, 1.0)
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
