"""JAX's functions are replaced while somebody listens, and put back by the last to leave."""

from __future__ import annotations

import contextlib
import functools

import jax
import numpy as np
import pytest

import harness
from harness.cache.ledger import ledger
from harness.errors import HarnessError, LedgerError, ProfileError
from harness.watch import jax_names

X = np.ones(3, np.float32)
KINDS = {
    "ledger": (ledger, jax_names.REQUESTS, "compiler", "compile_or_get_cached", LedgerError),
    "profile": (harness.profile, jax_names.BUILDS, "pjit", "_infer_params", ProfileError),
}
kinds = pytest.mark.parametrize(("opened", "names", "module", "name", "error"), KINDS.values())


def points():
    """Return what stands in every place of JAX that is ever replaced, and what it hides."""
    return [
        *(
            point.function
            for names in (jax_names.BUILDS, jax_names.REQUESTS)
            for point in jax_names.points(names, "test", HarnessError).values()
        ),
        *jax_names.module("source_info_util")._exclude_paths,
    ]


def built(opened):
    """Return how many builds or requests were seen."""
    return len(opened.events if hasattr(opened, "events") else opened.builds)


def work(number):
    return jax.jit(lambda x: x * number)(X)


@kinds
@pytest.mark.parametrize("failing", [False, True])
def test_the_last_to_leave_puts_everything_back(opened, names, module, name, error, failing):
    before = points()
    with contextlib.suppress(ZeroDivisionError), opened() as outer:
        with opened() as inner:
            work(1.5)
        during = [point.function for point in jax_names.points(names, "", error).values()]
        assert not any(one is other for one in before for other in during)
        work(2.5)
        if failing:
            raise ZeroDivisionError
    assert all(one is other for one, other in zip(before, points(), strict=True))
    work(3.5)
    assert (built(inner), built(outer)) == (1, 2)


@kinds
def test_somebody_else_may_replace_the_same_functions(
    opened, names, module, name, error, monkeypatch
):
    called = []

    def around(real, label):
        @functools.wraps(real)
        def theirs(*args, **kwargs):
            called.append(label)
            return real(*args, **kwargs)

        return theirs

    place = jax_names.module(module)
    monkeypatch.setattr(place, name, around(getattr(place, name), "before"))
    with opened() as first:
        after = around(getattr(place, name), "after")
        setattr(place, name, after)
        work(4.5)
    assert called[:2] == ["after", "before"]
    assert getattr(place, name) is after  # theirs stays; ours underneath passes everything on
    work(5.5)
    with opened() as again:
        work(6.5)
    assert (built(first), built(again)) == (1, 1)


@kinds
def test_a_jax_that_is_not_known_is_refused_and_left_alone(
    opened, names, module, name, error, monkeypatch
):
    before = points()
    wrong = {**names, "wrong": jax_names.Name("compiler", "_no_such_name")}
    monkeypatch.setattr(jax_names, "REQUESTS" if names is jax_names.REQUESTS else "BUILDS", wrong)
    said = r"does not know jax \d.*: it lacks jax\._src\.compiler\._no_such_name\. .* newer"
    with pytest.raises(error, match=said), opened():
        pass
    monkeypatch.undo()
    assert all(one is other for one, other in zip(before, points(), strict=True))


def test_an_argument_that_a_release_lacks_is_named(monkeypatch):
    monkeypatch.setattr(jax_names.module("compiler"), "_cache_write", lambda something: None)
    with pytest.raises(LedgerError, match=r"_cache_write\(cache_key=\)"), ledger():
        pass
