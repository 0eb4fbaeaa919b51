"""A function that is jitted anew over other arrays: jitting it once must not change a result."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harness
from harness.jaxhooks import description


def loss(w, data):
    return jnp.sum((w - data) ** 2)


def plain(w, data):
    return jax.jit(lambda w: loss(w, data))(w)


def of_numpy(w, data):
    data = np.asarray(data)
    return jax.jit(lambda w: loss(w, data))(w)


def of_a_pytree(w, data):
    tree = {"a": [data, 2.0], "b": (data + 1,)}
    return jax.jit(lambda w: loss(w, tree["a"][0]) * tree["a"][1] + loss(w, tree["b"][0]))(w)


class Model:
    def __init__(self, data):
        self.data = data

    def fit(self, w):
        @jax.jit
        def step(w):
            return loss(w, self.data)

        return step(w)


def in_a_method(w, data):
    return Model(data).fit(w)


def inside_another(w, data):
    inner = jax.jit(lambda w: loss(w, data))
    return jax.jit(lambda w: inner(w) * 2)(w)


def in_a_scan(w, data):
    return jax.jit(lambda w: jax.lax.scan(lambda c, _: (c - data, None), w, length=3)[0].sum())(w)


def ahead_of_time(w, data):
    return jax.jit(lambda w: loss(w, data)).lower(w).compile()(w)


WAYS = (plain, of_numpy, of_a_pytree, in_a_method, inside_another, in_a_scan, ahead_of_time)


def arrays(size, *numbers):
    return [np.random.default_rng(n).normal(size=size).astype(np.float32) for n in numbers]


def remedies(way, w, several):
    """Return the codes of what is advised of each build after the first, and the results."""
    with harness.profile(sample_ms=0) as profile:
        results = [float(way(w, data)) for data in several]
    causes = [profile.cause_of(built) for built in profile.builds if not built.eager]
    advised = [one.remedy.kind for one in causes if one.kind == "new function object"]
    return advised, results


@pytest.mark.parametrize(
    ("way", "size"),
    [*((plain, size) for size in (3, 10, 11, 100)), *((way, 40) for way in WAYS[1:])],
)
def test_what_closes_over_other_arrays_is_jitted_once_with_them_as_arguments(way, size):
    w, several = jnp.zeros(size), list(map(jnp.asarray, arrays(size, 1, 2, 1)))
    advised, results = remedies(way, w, several)
    assert len(advised) >= 2
    # The third equals the first. What is only lowered may not be jitted at all.
    assert set(advised) == {"define once and pass" if way is ahead_of_time else "jit once and pass"}
    # Followed: jitted once, with the arrays as arguments.
    once = jax.jit(way) if way is not of_numpy and way is not ahead_of_time else jax.jit(plain)
    assert [float(once(w, data)) for data in several] == pytest.approx(results, rel=1e-5)
    assert results[0] == results[2] != results[1]


@pytest.mark.parametrize("most", [description.MOST_HASHED, 8], ids=["equal", "same object"])
def test_what_closes_over_the_same_arrays_is_only_jitted_once(monkeypatch, most):
    monkeypatch.setattr(description, "MOST_HASHED", most)
    w, (data,) = jnp.zeros(40), map(jnp.asarray, arrays(40, 1))
    several = [data, data if most == 8 else data + 0]
    advised, _ = remedies(plain, w, several)
    assert advised == ["jit once"]


def test_arrays_too_large_to_be_hashed_are_told_apart_by_object(monkeypatch):
    monkeypatch.setattr(description, "MOST_HASHED", 8)
    advised, _ = remedies(plain, jnp.zeros(40), list(map(jnp.asarray, arrays(40, 1, 2))))
    assert advised == ["jit once and pass"]
