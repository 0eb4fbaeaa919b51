"""Operations and bytes of a baseline that nothing fuses."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

from benchmarks.elementwise import BlackScholes
from harness import Workload, spec
from harness.baselines.counting import CountingNamespace, count, tally
from harness.workload.workload import Case
from tools.gpu.programs import gelu, layernorm, softmax

N = 64
X = np.random.default_rng(1).uniform(0.5, 1.5, (N, 32 * N)).astype("float32")
ROW = X[0].copy()

black_scholes = functools.partial(BlackScholes.baseline, rate=0.02, volatility=0.3)


def swish(xp, x):
    return x / (1 + xp.exp(-x))


def logsumexp(xp, x):
    return xp.logsumexp(x, axis=-1)


def affine_layernorm(xp, x, scale, shift):
    return layernorm(xp, x) * scale + shift


def sum_of_squares(xp, x):
    return xp.sum(x * x)


@pytest.mark.parametrize(
    ("function", "arguments", "operations", "times"),
    [
        (gelu, (X,), 9, 11.0),
        (swish, (X,), 4, 4.5),
        (softmax, (X,), 5, 4.0),
        (affine_layernorm, (X, ROW, ROW + 1), 11, 6.0),
        (logsumexp, (X,), 6, 6.0),
        (sum_of_squares, (X,), 2, 3.0),
        (black_scholes, (X, X + 1, X + 2), 22, 13.0),
    ],
)
def test_operations_and_bytes_are_those_of_the_eager_program(
    function, arguments, operations, times
):
    """`times` what any program must move."""
    found = tally(function, arguments)
    results = function(CountingNamespace(), *arguments)
    least = sum(np.asarray(leaf).nbytes for leaf in jax.tree_util.tree_leaves((arguments, results)))
    assert found.operations == operations
    assert found.traffic_bytes / least == pytest.approx(times, rel=0.02)


def test_identical_operands_and_broadcast_axes_are_read_once():
    assert tally(lambda xp, x: x * x, [X]).traffic_bytes == 2 * X.nbytes
    assert tally(lambda xp, x: x * x[:], [X]).traffic_bytes == 2 * X.nbytes
    wide = tally(lambda xp, x, r: x + xp.broadcast_to(r, x.shape), [X, ROW])
    assert (wide.operations, wide.traffic_bytes) == (1, 2 * X.nbytes + ROW.nbytes)


def test_views_cost_nothing_and_copies_do():
    assert tally(lambda xp, x: xp.squeeze(xp.reshape(x, (N, -1, 1))[1:]), [X]).operations == 0
    assert tally(lambda xp, x: x[::2].T, [X]).operations == 0
    copied = tally(lambda xp, x: xp.astype(x, "float64"), [X])
    assert (copied.names, copied.traffic_bytes) == (["astype"], 3 * X.nbytes)
    gathered = tally(lambda xp, x, i: x[i], [X, np.array([3, 1])])
    assert gathered.traffic_bytes >= X[:2].nbytes


def test_methods_writes_and_operations_in_place_are_counted():
    def function(xp, x):
        y = x + 1
        y += x
        y[1:] = 0
        return y.mean(axis=0), x.sum(), x.argmax(axis=1), y.std(axis=1)

    assert tally(function, [X]).names == [
        *("add", "add", "setitem"),
        *("sum", "divide", "add", "argmax"),
        *("sum", "divide", "var", "sqrt"),
    ]


def test_composed_reductions_give_numpys_values():
    seen, x = [], X.astype("float64")

    def function(xp, x):
        seen.extend((xp.mean(x, axis=1), xp.var(x, axis=1, correction=1), xp.std(x)))
        seen.append(xp.logsumexp(x, axis=0, keepdims=True))
        return ()

    tally(function, [x])
    expected = x.mean(axis=1), x.var(axis=1, ddof=1), x.std()
    expected += (np.log(np.exp(x).sum(axis=0, keepdims=True)),)
    for one, other in zip(seen, expected, strict=True):
        np.testing.assert_allclose(one, other)


class Scaled(Workload):
    """Nested inputs and a static argument."""

    sweep = {"factor": [3]}
    static = ("factor",)

    def inputs(self):
        return ({"w": spec((8, 8)), "b": [spec((8,))]},)

    @staticmethod
    def function(params, *, factor):
        return params["w"] * factor + params["b"][0]

    @staticmethod
    def baseline(xp, params, *, factor):
        return Scaled.function(params, factor=factor)


def test_a_workload_is_counted_with_its_static_arguments():
    w, b = np.ones((8, 8), "float32"), np.ones(8, "float32")
    found = count(Scaled, Case({"factor": 3}), ({"w": w, "b": [b]},))
    assert found == (2, 4 * w.nbytes + b.nbytes)


def test_a_baseline_that_arrays_which_count_cannot_follow_is_not_counted():
    class Odd(Scaled):
        @staticmethod
        def baseline(xp, params, *, factor):
            return params["w"].somewhere_else

    assert count(Odd, Case({"factor": 3}), ({"w": np.ones((8, 8), "float32")},)) == (None, None)
