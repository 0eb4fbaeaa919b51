"""A build is compared with the nearest of all earlier ones, however long ago that was."""

from __future__ import annotations

import dataclasses
import functools

import jax
import numpy as np
import pytest

import harness
from harness.profiles.findings import findings

X = np.ones(4, np.float32)


def of_two_static_arguments():
    traced = jax.jit(lambda x, layers, act: x * layers, static_argnames=("layers", "act")).trace
    for layers in range(1, 9):
        traced(X, layers=layers, act="tanh")
    for act in ("sin", "relu", "cos"):
        traced(X, layers=1, act=act)


def of_settings():
    traced = jax.jit(lambda x: x * 2).trace
    traced(X)
    for precision in ("bfloat16", "float32", "highest", "high", "default", "F32_F32_F32"):
        with jax.default_matmul_precision(precision):
            traced(X)
    with jax.numpy_rank_promotion("warn"):
        traced(X)
    with jax.threefry_partitionable(False):
        traced(X)


def of_two_arrays():
    traced = jax.jit(lambda x, y: (x, y)).trace
    for size in range(1, 15):
        traced(np.ones(size), X)
    for size in (5, 6):
        traced(np.ones(1), np.ones(size))


def of_three_static_arguments_of_which_one_returns():
    traced = jax.jit(lambda x, a, b, c: x, static_argnums=(1, 2, 3)).trace
    for number in range(12):
        traced(X, number, 0, "c")
    traced(X, 0, 1, "c")
    traced(X, 0, 0, "d")


def of_sizes_under_a_setting():
    traced = jax.jit(lambda x: x * 2).trace
    traced(X)
    for size in range(5, 20):
        with jax.default_matmul_precision("high"):
            traced(np.ones(size, np.float32))
    with jax.numpy_dtype_promotion("strict"):
        traced(X)


ONE = "jax_default_matmul_precision"


@pytest.mark.parametrize(
    ("program", "named"),
    [
        (of_two_static_arguments, [*["layers"] * 7, *["act"] * 3]),
        (of_settings, [*[ONE] * 6, "jax_numpy_rank_promotion", "jax_threefry_partitionable"]),
        (of_two_arrays, [*["x"] * 13, "y", "y"]),
        *(
            pytest.param(program, named, marks=pytest.mark.nightly)
            for program, named in (
                (of_three_static_arguments_of_which_one_returns, [*"a" * 11, "b", "c"]),
                (of_sizes_under_a_setting, [*"x" * 15, "jax_numpy_dtype_promotion"]),
            )
        ),
    ],
)
def test_what_alone_differs_from_the_nearest_build_is_named(program, named):
    with harness.profile(sample_ms=0) as profile:
        program()
    first, *causes = [profile.cause_of(built) for built in profile.builds if not built.eager]
    assert first.kind == "first"
    assert [cause.argument for cause in causes] == named
    assert causes[-1].also.number == 0


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["x"], meta_fields=["iterations", "solver"]
)
@dataclasses.dataclass
class Options:
    """Data, and two fields that are none."""

    x: np.ndarray
    iterations: int
    solver: str


def test_of_structures_the_one_with_fewer_other_fields_is_the_nearest():
    traced = jax.jit(lambda options: options.x * options.iterations).trace
    with harness.profile(sample_ms=0) as profile:
        for given in ((100, "newton"), (7, "newton"), (100, "cg")):
            traced(Options(X, *given))
    first, _, last = profile.builds
    assert profile.cause_of(last).nearest == first.line.id


def test_each_setting_is_reported_with_how_often_it_changed():
    with harness.profile(sample_ms=0) as profile:
        of_settings()
    again = [one for one in findings(profile) if one.kind == "again"]
    assert sorted((one.reached, one.count) for one in again) == [
        *[("traced", 1)] * 2,
        ("traced", 6),
    ]


def test_many_builds_are_looked_up_by_what_they_share():
    """The number of earlier builds that one is compared with has a bound."""
    from harness.profiles.causes import history

    traced = jax.jit(lambda x, n, m: x, static_argnums=(1, 2)).trace
    compared = []
    neighbours = history.History.neighbours
    with pytest.MonkeyPatch.context() as patch, harness.profile(sample_ms=0) as profile:
        for number in range(120):
            traced(X, number, number % 7)

        def counting(self, *given):
            compared.append(len(found := neighbours(self, *given)))
            return found

        patch.setattr(history.History, "neighbours", counting)
        assert len(profile.causes) == 120
    assert len(compared) >= 100
    assert max(compared) <= history.RECENT + 12
