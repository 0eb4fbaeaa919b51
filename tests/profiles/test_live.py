"""The state of a profile while it is written, from lines that the real writer wrote."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from dataclasses import replace

import jax
import numpy as np
import pytest

import harness
from harness.profiles import live
from harness.profiles.live import Following
from harness.watch import events
from harness.watch.writer import encoded
from tests.profiles import logs

S = 1_000_000_000
HOST = socket.gethostname()
STARTED = replace(logs.started(clock=0, pid=os.getpid()), host=HOST)
STEP = events.Function(2, "step", "Model.step", "/project/model.py", 8, "program")
LIBRARY = events.Frame("/lib/site-packages/optax/x.py", 7, "update", "library")
STACK = events.Stack(1, (*logs.STACK.frames, LIBRARY))


def build(number, function, begin_s, end_s, thread=1):
    begin, middle, end = 1000 * begin_s, 500 * (begin_s + end_s), 1000 * end_s
    stages = ("trace", begin, middle), ("compile", middle, end)
    return logs.build(number, begin, end, *stages, function=function, thread=thread)


def running(begin_s, at_s, function=1, thread=1):
    times = round(begin_s * S), round(at_s * S)
    return events.Running(function, "compile", 1, thread, *times)


class Writing:
    """A log that is being written."""

    def __init__(self, folder, name="h-1-0.jsonl", started=STARTED):
        self.path = folder / name
        self(started, logs.FUNCTION, STEP, STACK)

    def __call__(self, *lines):
        self.raw(b"".join(map(encoded, lines)))

    def raw(self, text):
        with self.path.open("ab") as file:
            file.write(text)


@pytest.fixture
def write(tmp_path):
    return Writing(tmp_path)


@pytest.fixture
def look(tmp_path):
    following = Following(tmp_path)
    return lambda seconds=3: following.look(seconds * S)


def test_a_folder_that_is_not_there_yet_is_empty(tmp_path):
    assert Following(tmp_path / "later").look(S) == live.State(0, 0, 0.0)


def test_builds_are_counted_as_they_come(write, look):
    write(build(1, 1, 1, 3))
    assert look(9).builds == 1
    write(build(2, 1, 4, 5), build(3, 2, 5, 9))
    state = look(9)
    assert (state.processes, state.builds, state.seconds) == (1, 3, 7.0)
    assert state.last == state.costliest[0] == live.Tally("step", "train.py:88", 1, 4.0)
    write(build(4, 1, 10, 12))
    assert look(13).costliest[0] == live.Tally("loss", "train.py:88", 3, 5.0)


def test_a_build_that_goes_on_is_there_until_it_ends(write, look):
    write(build(1, 1, 0, 1), running(2, 2.5))
    state = look(10)
    assert state.running == (live.Now("loss", "train.py:88", "compile", 2 * S, 1, os.getpid()),)
    assert state.seconds == 9.0
    write(running(2, 3.5), build(2, 2, 5, 6))  # inside the one that goes on
    assert [now.function for now in look(10).running] == ["loss"]
    write(build(3, 1, 2, 11))
    assert look(11).running == ()


def test_the_one_that_takes_longest_is_first_and_threads_overlap_once(write, look):
    write(build(1, 1, 0, 4, thread=5), build(2, 1, 1, 3, thread=6), build(3, 1, 10, 12, thread=5))
    write(running(11, 12, thread=7), running(9, 12, function=2, thread=8))
    state = look(14)
    assert [now.function for now in state.running] == ["step", "loss"]
    assert state.seconds == 4 + 5


def test_half_a_line_waits_for_its_rest_and_nothing_is_read_twice(write, look):
    assert look().builds == 0
    whole = encoded(build(1, 1, 1, 3))
    for position in range(0, len(whole), 7):
        write.raw(whole[position : position + 7])
        assert look().builds == (position + 7 >= len(whole))
    assert look().builds == 1


def test_a_log_beyond_what_is_read_at_once_takes_several_looks(write, look, monkeypatch):
    monkeypatch.setattr(live, "AT_ONCE_BYTES", 500)
    write(*(build(number, 1, number, number + 1) for number in range(50)))
    counts = [look().builds for _ in range(60)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 50)


def test_new_processes_appear_and_ended_ones_are_let_go(tmp_path, write, look):
    write(running(1, 2))
    assert look().processes == 1
    Writing(tmp_path, "h-2-0.jsonl")(build(1, 1, 1, 2))
    state = look()
    assert (state.processes, state.builds, len(state.running)) == (2, 1, 1)
    assert state.running[0].before == 1  # the same function, in the other process
    write(events.Ended(3 * S, "exit"))
    state = look()
    assert (state.processes, state.running) == (1, ())


@pytest.mark.parametrize(
    ("host", "shown"), [(HOST, 0), ("elsewhere", 1)], ids=["here", "elsewhere"]
)
def test_a_process_that_was_killed_builds_nothing_any_more(tmp_path, look, host, shown):
    child = subprocess.Popen(["true"])
    child.wait()
    Writing(tmp_path, started=replace(STARTED, pid=child.pid, host=host))(running(1, 2))
    assert len(look().running) == shown


def test_garbage_and_newer_logs_are_passed_over(tmp_path, write, look):
    write.raw(b"\xff\x00{}\n[[[\n" + b"[" * 100_000 + b"\n")
    write(build(1, 7, 1, 2))  # a function that nobody named
    Writing(tmp_path, "h-9-0.jsonl", replace(STARTED, schema=99))
    (tmp_path / "x.jsonl").mkdir()
    state = look()
    assert (state.builds, state.last.function) == (1, "?")


def test_a_real_profile_is_followed_while_it_is_recorded(tmp_path):
    following = Following(tmp_path)
    with harness.profile(tmp_path):
        for size in (3, 4):
            jax.jit(lambda x: x * 2)(np.ones(size))
        state = following.look(time.perf_counter_ns())
        assert (state.processes, state.builds) == (1, 2)
        assert state.last.place.startswith("test_live.py:")
    assert following.look(time.perf_counter_ns()).processes == 0
