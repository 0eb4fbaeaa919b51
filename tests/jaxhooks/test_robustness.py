"""The program goes on, and JAX is put back, whatever happens to the profile or the program does."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harness
from harness.errors import ProfileError
from harness.jaxhooks import call_sites, description, events, session
from harness.jaxhooks.builds import Builds
from harness.jaxhooks.recorder import Recorder
from harness.jaxhooks.visits import JaxVisit
from tests.jaxhooks.recorded import builds, lines, named, of_a_library, profiled, times
from tools.performance.profile_overhead import installed

X = np.ones(3, np.float32)


def fresh(number=1.0):
    return jax.jit(lambda x: x * number)


def test_the_method_that_clears_one_function_is_put_back():
    from jax._src import pjit

    jitted = fresh(2.0)
    with harness.profile():
        fresh(2.5)(X)  # JAX sets the method again, to what it finds
        assert type(jitted).clear_cache is not pjit.jit_evict_fn.__wrapped__
    assert type(jitted).clear_cache is pjit.jit_evict_fn
    assert not hasattr(pjit.jit_evict_fn, "__wrapped__")


@pytest.mark.parametrize(
    ("holder", "name"),
    [
        (Builds, "_enter"),
        (Builds, "_leave"),
        (Builds, "_settle"),
        (Builds, "_inferred"),
        (Builds, "_begin"),
        (Builds, "_report"),
        (Recorder, "built"),
        (description.Describer, "describe"),
        (description.Describer, "_arguments"),
        (description.Describer, "function_of"),
        (description.Describer, "link_trace"),
        (call_sites, "places"),
    ],
)
def test_a_failure_of_our_own_is_counted_and_the_program_goes_on(holder, name, monkeypatch):
    def broken(*_, **__):
        raise LookupError("broken on purpose")

    monkeypatch.setattr(holder, name, broken)
    with harness.profile() as found:
        jitted = fresh(3.0)
        results = jitted(X), jitted.trace(X).lower().compile()(X), jax.vmap(jitted)(X)
        with pytest.raises(TypeError):
            jitted("text")
    assert all((np.asarray(result) == 3).all() for result in results)
    ended = found.processes[0].ended
    assert ended is not None
    assert any("broken on purpose" in text for text in ended.failures)


class Compiling:
    """A thread that compiles until it is told to go on."""

    def __init__(self):
        self.inside, self.go_on, self.results = threading.Event(), threading.Event(), []
        self.thread = threading.Thread(target=lambda: self.results.append(jax.jit(self.f)(X)))
        self.thread.start()
        assert self.inside.wait(30)

    def f(self, x):
        self.inside.set()
        assert self.go_on.wait(30)
        return x * 12

    def end(self):
        self.go_on.set()
        self.thread.join(30)


def test_it_ends_while_another_thread_compiles():
    with harness.profile() as found:
        compiling = Compiling()
    compiling.end()
    assert (np.asarray(compiling.results[0]) == 12).all()
    (running,) = lines(found, events.Running)
    assert (running.stage, running.thread) == ("trace", compiling.thread.ident)
    assert found.processes[0].functions[running.function].name == "f"


def test_a_profile_that_begins_while_another_thread_compiles_leaves_that_out():
    with harness.profile() as first:
        compiling = Compiling()
        with harness.profile() as second:
            compiling.end()
            fresh(14.0)(X)
    assert len(named(list(first.builds), "f")) == 1
    assert [built.function.name for built in second.builds] == ["<lambda>"]


def test_what_is_lowered_is_the_same_as_without_a_profile():
    texts = []
    for context in (contextlib.nullcontext(), harness.profile()):
        with context:
            jax.clear_caches()
            lowered = jax.jit(lambda x: jnp.sin(x).sum() + jnp.ones(2).sum()).lower(X)
            texts.append(lowered.as_text(debug_info=True))
    assert texts[0] == texts[1]
    assert "loc(" in texts[0]


def test_a_visit_whose_end_was_missed_is_left_out():
    with harness.profile() as found:
        here = threading.get_ident()
        session._recorder.builds.open[here] = JaxVisit("call", 0, here)
        fresh(15.0)(X)
    (built,) = found.builds
    assert built.line.parent == 0


def test_deleted_arrays_tracers_and_errors_of_arguments():
    gone = jnp.ones(3)
    gone.delete()

    def run():
        for value in (gone, of_a_library("1 / 0"), "text"):
            with pytest.raises((RuntimeError, TypeError)):
                jax.jit(lambda x: x)(value)

    found = profiled(run)
    assert [built.line.error for built in found.builds].count("TypeError") == 2


def test_a_value_that_calls_jax_when_it_is_looked_at_makes_no_builds():
    value = of_a_library("str(jax.jit(lambda x: x * 18)(X)[0])", jax=jax, X=X)
    (built,) = builds(lambda: jax.jit(lambda x, _: x * 19, static_argnums=1)(X, value))
    assert built.arguments.statics[0].value == "18.0"


# --- programs that do what programs should not ----------------------------------------------------


def test_threads_that_compile_at_once_are_told_apart(tmp_path):
    barrier = threading.Barrier(6)
    idents = {}

    def work(number):
        barrier.wait()
        idents[threading.get_ident()] = number
        for size in (3, 4, 5):
            jax.jit(lambda x: x + number)(np.ones(size + 10 * (number + 1)))

    with harness.profile(tmp_path / "profile") as found, ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    done = [built for built in found.builds if built.times("compile")]
    assert len(done) == 18
    for built in done:
        [leaf] = built.arguments.leaves
        assert leaf.aval[:9] == f"float32[{idents[built.line.thread] + 1}"
        assert times(built) == {"trace": 1, "lower": 1, "compile": 1}
        assert built.line.parent == 0


class OwnError(Exception):
    """The program's own."""


@pytest.fixture
def raising_listener():
    """A listener of the program's that raises, and is there with and without a profile."""
    from jax._src import monitoring

    lists = [value for value in vars(monitoring).values() if isinstance(value, list)]
    before = [list(value) for value in lists]
    raising = Mock(side_effect=OwnError("a listener of the program's"))
    yield lambda: monitoring.register_event_duration_secs_listener(raising)
    for value, was in zip(lists, before, strict=True):
        value[:] = was


def outcome(size):
    try:
        return jax.jit(lambda x: x - 1)(np.ones(size)).shape
    except OwnError as error:
        return str(error)


def test_a_listener_that_raises_is_seen_as_it_would_be_without_a_profile(raising_listener):
    raising_listener()
    without = [outcome(size) for size in (3, 4)]
    before = installed()
    with harness.profile() as found:
        within = [outcome(size) for size in (3, 4)]
    assert within == without
    assert installed() == before
    assert found.processes[0].ended is not None
    with harness.profile() as found:
        raising_listener()  # one that comes later
        assert outcome(5) == without[0]
    assert found.processes[0].ended is not None


def test_a_program_that_takes_all_listeners_away_is_recorded_to_the_end(raising_listener):
    before = installed()
    with harness.profile() as found:
        jax.monitoring.clear_event_listeners()
        assert outcome(6) == (6,)
    assert len([built for built in found.builds if built.times("compile")]) == 1
    now = installed()
    assert all(now[name] == value for name, value in before.items() if ":" in name)


def test_names_that_are_no_unicode_are_recorded(tmp_path):
    def odd(tree, how):
        return tree["caf\udce9"] + 1

    with harness.profile(tmp_path / "profile") as found:
        jax.jit(odd, static_argnames="how").trace({"caf\udce9": np.ones(3)}, how="half\ud83d")
    (built,) = found.builds
    assert "udce9" in built.arguments.leaves[0].path
    assert "ud83d" in built.arguments.statics[0].value
    assert found.processes[0].ended.lost == 0


def test_a_folder_that_cannot_be_written_is_said_and_nothing_installed():
    before = installed()
    with pytest.raises(ProfileError, match="cannot be written"), harness.profile("/proc/nowhere"):
        pytest.fail("the profile was opened")
    assert installed() == before
