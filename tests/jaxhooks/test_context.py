"""`with harness.profile() as p:` wherever it stands."""

import os
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import jax
import numpy as np
import pytest

import harness
from harness.errors import ProfileError
from harness.jaxhooks import events, log_file, session
from harness.jaxhooks.writer import Writer
from tools.performance.profile_overhead import installed


def build(name):
    def function(x):
        return x + 1

    function.__name__ = name
    return jax.jit(function)(np.ones(3))


def names(profile):
    return [built.function.name for built in profile.builds]


def test_it_answers_while_it_is_open_and_afterwards(tmp_path):
    for folder in (None, tmp_path / "p"):
        with harness.profile(folder) as profile:
            assert names(profile) == []
            build("first")
            assert names(profile) == ["first"]
            assert profile.processes[0].ended is None
            build("second")
            assert names(profile) == ["first", "second"]
        assert names(profile) == ["first", "second"]
        assert profile.processes[0].started.how == "context"
        assert profile.processes[0].ended.why == "context"
        builds = profile.builds
        assert profile.builds is builds


def test_several_at_once_have_each_what_was_built_in_their_time():
    before = installed()
    with harness.profile() as outer:
        build("a")
        with harness.profile() as inner:
            build("b")
        other = harness.profile()
        late = other.__enter__()
        build("c")
    build("d")
    other.__exit__(None, None, None)
    build("e")
    assert installed() == before
    assert names(outer) == ["a", "b", "c"]
    assert names(inner) == ["b"]
    assert names(late) == ["c", "d"]
    assert inner.builds[0].line.spans == outer.builds[1].line.spans
    for profile in (outer, inner, late):
        assert all(len(built.line.requests) == 1 for built in profile.builds)
        assert {built.call_site.file for built in profile.builds} == {__file__}
        assert profile.processes[0].ended.why == "context"


def test_threads_may_each_have_one_and_every_one_sees_all_threads():
    barrier = threading.Barrier(3, timeout=20)

    def work(name):
        with harness.profile() as profile:
            barrier.wait()
            build(name)
            barrier.wait()
        return sorted(names(profile))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, "xyz")) == [["x", "y", "z"]] * 3


def test_an_exception_passes_and_nothing_goes_on():
    threads = threading.active_count()
    with pytest.raises(KeyError, match="own"), harness.profile() as profile:
        jax.jit({}.__getitem__, static_argnums=0)("own")
    assert [built.line.error for built in profile.builds] == ["KeyError"]
    assert threading.active_count() == threads
    assert session._recorder is None


def test_a_folder_may_hold_the_files_of_others(tmp_path):
    with harness.profile(tmp_path) as first:
        build("first")
    with harness.profile(tmp_path) as second:
        build("second")
    assert (names(first), names(second)) == (["first"], ["second"])
    assert names(harness.load_profile(tmp_path)) == ["first", "second"]


def test_files_that_go_away_are_borne_and_hide_no_error_of_the_program(tmp_path):
    def program():
        build("seen")
        assert names(profile) == ["seen"]
        shutil.rmtree(tmp_path / "p")
        raise KeyError("own")

    with pytest.raises(KeyError, match="own"), harness.profile(tmp_path / "p") as profile:
        program()
    assert names(profile) == ["seen"]


# JAX says, and rightly, that its threads are not in the child; this one needs none of them.
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_child_that_is_forked_inside_has_a_file_of_its_own(tmp_path):
    with harness.profile(tmp_path, sample_ms=0) as profile, harness.profile() as in_memory:
        pid = os.fork()
        if pid == 0:
            jax.jit(lambda x: x, inline=True).trace(1.0)
            os._exit(0)
        os.waitpid(pid, 0)
        build("parent")
    assert names(profile) == names(in_memory) == ["parent"]
    child = [p for p in harness.load_profile(tmp_path).processes if p.started.pid == pid]
    assert [process.started.how for process in child] == ["fork"]
    assert [line.kind for line in child[0].of(events.Build)] == ["trace"]
    assert child[0].ended.why == "exit"


def test_a_missing_jax_is_one_clear_error(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.setattr(sys, "path", ["/nowhere"])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(ProfileError, match="pip install jax"):
        session.start(Writer(None), "context")


def test_the_first_line_has_the_schema_of_all_others():
    assert log_file.SCHEMA == events.SCHEMA
    assert log_file.started("context").keys() == {one.name for one in fields(events.Started)}
