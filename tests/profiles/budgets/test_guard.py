from __future__ import annotations

import asyncio
import contextlib
import gc
import pickle
import re
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harness
from harness.errors import HarnessError, UsageError
from harness.jaxhooks import jax_names


def ones(size):
    return np.ones(size, np.float32)


def hooks():
    """What stands in JAX where the profile puts its own."""
    return [
        getattr(point.holder, point.name)
        for point in jax_names.points(jax_names.BUILDS, "test", HarnessError).values()
    ]


@contextlib.contextmanager
def exceeded(match=None, **limits):
    """Expect that a block exceeds its budget."""
    with pytest.raises(harness.BudgetExceeded, match=match) as caught, harness.budget(**limits):
        yield caught


@pytest.fixture(autouse=True)
def _nothing_stays():
    before = hooks()
    yield
    gc.collect()
    assert hooks() == before


@pytest.fixture
def loss():
    def loss(x, steps):
        return x * steps

    return jax.jit(loss, static_argnames="steps")


@pytest.fixture
def step():
    def step(x):
        return x + 1

    return jax.jit(step)


def test_over_the_budget_the_error_names_function_and_call_site_in_any_process(loss):
    def train():
        for steps in range(1, 6):
            loss(ones(3), steps)

    with exceeded(max_compiles=2) as caught:
        train()
    text = str(caught.value)
    line = loss.__wrapped__.__code__.co_firstlineno
    where = r"harness\.budget at test_guard\.py:\d+"
    assert re.match(rf"5 compiles, and {where} allows 2 \(max_compiles = 2\)\.", text)
    assert f"test_guard.py:{line}) was compiled 5 times" in text
    assert re.search(r"called at \S*test_guard\.py:\d+ in \S*train: ", text)
    (over,) = caught.value.over
    assert (over.limit, over.allowed, over.used) == ("max_compiles", 2, 5)
    assert over.functions[0].endswith("loss")
    assert isinstance(caught.value, AssertionError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.over) == (text, caught.value.over)


@pytest.mark.parametrize("limit", ["max_compiles", "max_traces", "max_lowers", "max_builds"])
def test_each_count_has_its_limit(step, limit):
    with harness.budget(**{limit: 1}):
        step(ones(3))
    with exceeded(f"{limit} = 1", **{limit: 1}):
        step(ones(4)), step(ones(5))


def test_seconds_have_a_limit_and_a_warning(step):
    with harness.budget(max_compile_seconds=3600):
        step(ones(3))
    with exceeded("Seconds depend on the machine", max_compile_seconds=0):
        step(ones(4))


def test_jaxs_own_functions_count_for_max_eager_alone():
    with harness.budget(max_compiles=0, max_builds=0):
        jnp.ones((3, 5, 7)) + 1
    jax.clear_caches()
    with exceeded("one-operation program", max_eager=0):
        jnp.ones((3, 5, 7)) + 1


def test_a_trace_inside_another_function_is_a_trace(step):
    @jax.jit
    def outer(x):
        return step(x) * 2

    with exceeded(max_traces=1) as caught:
        outer(ones(3))
    assert caught.value.over[0].used == 2
    with harness.budget(functions="step", max_compiles=0):
        outer(ones(4))


def test_only_some_functions_are_counted(step, loss):
    with harness.budget(max_compiles=0, functions=["loss", re.compile(r".*\.loss")]):
        step(ones(3))
    for name in ("step", r"test_guard.py:.*step", [r"ste."]):
        jax.clear_caches()
        with exceeded(max_compiles=0, functions=name):
            step(ones(4))


@pytest.mark.nightly
def test_a_name_that_no_function_has_is_refused(step):
    dead = weakref.proxy(type("Gone", (), {})())  # it raises whatever it is asked
    asyncio.run(asyncio.sleep(1e-3))  # Python 3.12 counts without end what `_asyncio` refers to now
    gc.freeze()  # as a server does before it forks; the collector lists none of it
    with (
        pytest.raises(harness.errors.UsageError, match=r"has 'stepp', .* Did you mean 'step'\?"),
        harness.budget(max_compiles=5, functions=["step", "stepp"]),
    ):
        step(ones(3))
    assert type(dead) is weakref.ProxyType
    # What was built before, is never called or is made only when something else is called, is one.
    names = ["step", "generator", "test_guard.py:test_a_coroutine_is_awaited.<locals>.serve"]
    with harness.budget(max_compiles=0, functions=names):
        pass


def test_each_function_may_have_as_much(step, loss):
    with harness.budget(max_compiles=2, each=True):
        step(ones(3)), step(ones(4)), loss(ones(3), 1), loss(ones(3), 2)
    with exceeded(r"3 compiles of `loss`", max_compiles=2, each=True) as caught:
        step(ones(5)), loss(ones(3), 3), loss(ones(3), 4), loss(ones(3), 5)
    assert len(caught.value.over) == 1
    jax.clear_caches()
    with harness.budget(max_compiles=1, each=True):  # JAX's own count for max_eager alone
        jnp.ones((3, 5, 7)), jnp.ones((3, 5, 8))


def test_no_compile_after_warm_up_in_a_block(step):
    def train(*sizes):
        with harness.budget(max_compiles=0) as budget:
            step(ones(3))
            budget.start()
            for size in sizes:
                step(ones(size))

    train(3, 3)
    with pytest.raises(harness.BudgetExceeded):
        train(4)


def test_no_compile_after_warm_up_in_a_function(step):
    @harness.budget(warm_up=2)
    def train(size):
        """Train."""
        return step(ones(size)).shape

    assert train.__doc__ == "Train."
    assert (train(3), train(4), train(3)) == ((3,), (4,), (3,))
    with pytest.raises(harness.BudgetExceeded, match="allows 0"):
        train(5)
    assert train(5) == (5,)


def test_a_budget_with_a_warm_up_can_be_closed(step):
    before = hooks()
    budget = harness.budget(warm_up=1)
    with budget:
        step(ones(3))
    assert hooks() != before
    budget.close()
    assert hooks() == before
    with pytest.raises(harness.BudgetExceeded), budget:
        step(ones(4))
    budget.close()


def test_what_a_call_builds_outside_is_not_counted(step):
    guarded = harness.budget(warm_up=1)(lambda: step(ones(3)))
    guarded()
    step(ones(9))
    guarded()


def test_what_the_program_raises_is_not_hidden(step):
    @harness.budget(max_compiles=0)
    def broken():
        step(ones(4))
        raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        broken()


def test_budgets_lie_in_each_other(step):
    with exceeded("max_compiles = 1", max_compiles=1):
        with exceeded("max_compiles = 0", max_compiles=0):
            step(ones(3))
        with harness.budget(max_compiles=1):
            step(ones(4))


def test_all_threads_count(step):
    with exceeded(max_compiles=0), ThreadPoolExecutor() as pool:
        pool.submit(step, ones(3))


def test_a_coroutine_is_awaited(step):
    @harness.budget(max_compiles=1)
    async def serve(*sizes):
        for size in sizes:
            await asyncio.sleep(0)
            step(ones(size))
        return sizes

    assert asyncio.run(serve(3)) == (3,)
    with pytest.raises(harness.BudgetExceeded):
        asyncio.run(serve(4, 5))


def test_inside_a_traced_function_nothing_can_be_counted():
    @jax.jit
    @harness.budget(max_compiles=0)
    def wrong(x):
        return x

    with pytest.raises(UsageError, match=r"Put @harness\.budget above @jax\.jit"):
        wrong(1.0)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "limits nothing; give it a limit such as max_compiles=3"),
        ({"max_compiles": -1}, "max_compiles is -1; expected a whole number, 0 or more"),
        ({"max_compiles": 10**400}, "expected a whole number, 0 or more"),
        ({"max_compiles": True}, "max_compiles is True; expected a whole number"),
        ({"max_traces": 1.5}, r"max_traces is 1\.5; expected a whole number"),
        ({"max_compile_seconds": float("nan")}, "is nan; expected a number of seconds"),
        ({"max_compile_seconds": "1 s"}, "is '1 s'; expected a number of seconds"),
        ({"warm_up": -1}, "warm_up is -1; expected how many calls are free"),
        ({"warm_up": True}, "warm_up is True; expected how many calls are free"),
        ({"max_compiles": 1, "each": 1}, "each is 1; expected True or False"),
        ({"max_eager": 1, "each": True}, "max_eager counts all of JAX's functions together"),
        ({"max_compiles": 1, "functions": "("}, r"'\(' is no regular expression"),
        ({"max_compiles": 1, "functions": []}, r"functions is \[\]; expected a name"),
        ({"max_compiles": 1, "functions": [3]}, "functions has 3; expected a name"),
        ({"max_compiles": 1, "functions": re.compile(b"x")}, "expected a name"),
        ({"max_compiles": 1, "functions": len}, "functions is <built-in function len>; expected"),
    ],
)
def test_what_is_no_budget_is_refused_where_it_is_written(given, text):
    with pytest.raises(UsageError, match=text) as caught:
        harness.budget(**given)
    assert "harness.budget at test_guard.py:" in str(caught.value)


def generator():
    yield 1


async def asynchronous():
    yield 1


def test_what_cannot_be_decorated_is_refused():
    for wrong in (generator, asynchronous):
        with pytest.raises(UsageError, match="is a generator, whose body does not run"):
            harness.budget(max_compiles=1)(wrong)
    for wrong in (3, int):
        with pytest.raises(UsageError, match="a budget decorates a function, not"):
            harness.budget(max_compiles=1)(wrong)
    with pytest.raises(UsageError, match="limits are given by name"):
        harness.budget(len)
    with pytest.raises(UsageError, match=r"start\(\) was called outside"):
        harness.budget(max_compiles=1).start()
