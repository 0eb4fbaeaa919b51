"""Programs that do what programs should not, with a profile open inside them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import harness
from harness.errors import ProfileError
from harness.watch import events
from tests.performance.profile_overhead import installed


def test_threads_that_compile_at_once_are_told_apart(tmp_path):
    barrier = threading.Barrier(6)
    idents = {}

    def work(number):
        barrier.wait()
        idents[threading.get_ident()] = number
        for size in (3, 4, 5):
            jax.jit(lambda x: x + number)(np.ones(size + 10 * number))

    with harness.profile(tmp_path / "profile") as found, ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    done = [built for built in found.builds if built.times("compile")]
    assert len(done) == 18
    for built in done:
        (leaf,) = built.arguments.leaves
        size = int(leaf.aval.partition("[")[2].rstrip("]"))
        assert size // 10 == idents[built.line.thread] or size < 10
        assert [span.times for span in built.line.spans] == [1, 1, 1]
        assert built.line.parent == 0


def test_100_real_lowerings_are_100_builds(tmp_path):
    function = jax.jit(lambda x: x * 3)
    with harness.profile(tmp_path / "profile") as found:
        for size in range(1, 101):
            function.lower(jax.ShapeDtypeStruct((size,), "float32"))
        for size in range(1, 6):
            for _ in range(3):
                function(np.ones(size, "float32"))
    lowered = [built for built in found.builds if built.times("lower")]
    assert len([built for built in lowered if built.line.kind != "call"]) == 100
    assert sum(built.times("compile") for built in found.builds) == 5
    assert found.broken_lines == 0
    assert found.processes[0].ended.failures == ()


class OwnError(Exception):
    """The program's own."""


def raising(*_, **__):
    raise OwnError("a listener of the program's")


@pytest.fixture
def raising_listener():
    """A listener of the program's that raises, and is there with and without a profile."""
    from jax._src import monitoring

    lists = [value for value in vars(monitoring).values() if isinstance(value, list)]
    before = [list(value) for value in lists]
    yield lambda: monitoring.register_event_duration_secs_listener(raising)
    for value, was in zip(lists, before, strict=True):
        value[:] = was


def outcome(size):
    try:
        return jax.jit(lambda x: x - 1)(np.ones(size)).shape
    except OwnError as error:
        return str(error)


def test_a_listener_that_raises_is_seen_as_it_would_be_without_a_profile(
    tmp_path, raising_listener
):
    raising_listener()
    without = [outcome(size) for size in (3, 4)]
    before = installed()
    with harness.profile(tmp_path / "profile") as found:
        within = [outcome(size) for size in (3, 4)]
    assert within == without
    assert installed() == before
    assert found.processes[0].ended is not None
    with harness.profile(tmp_path / "again") as found:
        raising_listener()  # one that comes later
        assert outcome(5) == without[0]
    assert found.processes[0].ended is not None


def test_a_program_that_takes_all_listeners_away_is_recorded_to_the_end(tmp_path, raising_listener):
    before = installed()
    with harness.profile(tmp_path / "profile") as found:
        jax.monitoring.clear_event_listeners()
        assert outcome(6) == (6,)
    assert len([built for built in found.builds if built.times("compile")]) == 1
    assert {name: value for name, value in installed().items() if ":" in name} == {
        name: value for name, value in before.items() if ":" in name
    }


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


def test_a_folder_that_is_deleted_meanwhile_does_not_hide_the_program_s_error(tmp_path):
    import shutil

    def program():
        with harness.profile(tmp_path / "profile"):
            shutil.rmtree(tmp_path / "profile")
            raise OwnError

    with pytest.raises(OwnError):
        program()


def test_arguments_of_thousands_of_arrays_are_one_build(tmp_path):
    many = {str(number): np.ones(2) for number in range(3_000)}
    with harness.profile(tmp_path / "profile") as found:
        jax.jit(lambda tree: tree["1"]).trace(many)
    (built,) = found.builds
    assert len(built.arguments.leaves) == 3_000
    assert built.arguments.leaves[1].path == "tree['1']"
    assert found.processes[0].of(events.Ended)
