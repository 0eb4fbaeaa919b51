"""The log's writer and reader, whatever the disk, the program and the file do."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from harness.errors import ProfileError
from harness.profiles.figures import damage
from harness.profiles.log_reader import read_file, read_folder
from harness.watch import events, log_file
from harness.watch.log_file import sealed
from harness.watch.writer import Writer, encoded
from tests.watch.recorded import STARTED, function, only, opened


def limited(folder, code):
    """Run code in a process of its own, which ends well, and return what it printed."""
    top = "import os, resource\nfrom pathlib import Path\n"
    top += "from harness.watch import events\nfrom tests.watch.recorded import *\n"
    done = subprocess.run(
        [sys.executable, "-c", top + f"folder = Path({str(folder)!r})\n" + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_lines_wait_for_a_full_disk_and_none_is_torn(tmp_path):
    """RLIMIT_FSIZE stands for the disk; its signal kills a program that wants the default."""
    limited(
        tmp_path,
        "import signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        "writer = opened(folder)\n"
        "soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))\n"
        "for number in range(50):\n"
        "    writer.write(function(number))\n"
        "assert Path(writer.file.path).stat().st_size == 1_000\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))\n"
        "writer.write(events.Ended(1, 'exit', lost=writer.lost))\n"
        "writer.close()\n",
    )
    found = only(tmp_path)
    assert [line.id for line in found.lines[1:-1]] == list(range(50))
    assert found.lines[-1].lost == 0
    assert found.broken_lines == 0


def test_lines_that_find_no_room_in_time_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(log_file, "MOST_WAITING", 20)
    writer = opened(tmp_path)
    size = Path(writer.file.path).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        for number in range(100):
            writer.write(function(number))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert 60 < writer.lost < 100
    writer.write(events.Ended(1, "exit", lost=writer.lost))
    writer.close()
    found = only(tmp_path)
    assert found.lines[-1].lost == 100 - (len(found.lines) - 2)


def test_what_is_still_waiting_at_the_end_is_lost_and_its_last_line_torn(tmp_path):
    said = limited(
        tmp_path,
        "writer = opened(folder)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "[writer.write(function(number)) for number in range(20)]\n"
        "writer.close()\n"
        "print(writer.lost)\n",
    )
    found = only(tmp_path)
    assert len(found.lines) - 1 + int(said) == 20
    assert found.broken_lines == 1


def test_a_program_that_closes_all_files_neither_gets_our_lines_nor_loses_them(tmp_path):
    (tmp_path / "profile").mkdir()
    said = limited(
        tmp_path / "profile",
        "writer = opened(folder)\n"
        "number = writer.file._descriptor\n"
        "os.closerange(3, number + 1)\n"
        "own = [open(folder.parent / str(n), 'wb') for n in range(20)]\n"
        "os.dup2(own[1].fileno(), number)\n"
        "writer.write(function(1))\n"
        "writer.close()\n"
        "own[0].write(b'still open')\n"
        "own[0].close()\n"
        "print(sum((folder.parent / str(n)).stat().st_size for n in range(20)))\n",
    )
    assert int(said) == len("still open")
    assert only(tmp_path / "profile").lines[1:] == (function(1),)


def test_a_late_thread_writes_to_a_closed_log(tmp_path):
    writer = opened(tmp_path)
    writer.close()
    writer.write(function(1))
    writer.close()
    writer.close()
    assert writer.lost == 0
    assert len(only(tmp_path).lines) == 2


def test_threads_and_signal_handlers_write_at_once(tmp_path):
    import signal

    writer = opened(tmp_path)
    numbers = iter(range(10**9))

    def write(times):
        for _ in range(times):
            writer.write(function(next(numbers)))

    # Not SIGALRM, by which a test's time is limited.
    before = signal.signal(signal.SIGVTALRM, lambda *_: writer.write(function(next(numbers))))
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0005, 0.0005)
    try:
        with ThreadPoolExecutor(4) as pool:
            done = [pool.submit(write, 500) for _ in range(4)]
            write(2_000)
            assert [one.result() for one in done] == [None] * 4
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_IGN)  # one may be on its way
        signal.signal(signal.SIGVTALRM, before)
    writer.close()
    found = only(tmp_path)
    assert sorted(line.id for line in found.lines[1:]) == list(range(next(numbers)))
    assert found.broken_lines == writer.lost == 0


def test_a_child_leaves_its_parents_file_alone(tmp_path):
    limited(
        tmp_path,
        "writer = opened(folder)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    writer.file.after_fork()\n"
        "    writer.write(function(2))\n"
        "    os._exit(0)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "writer.write(function(1))\n"
        "writer.close()\n",
    )
    found = sorted((log.started.how, log.lines[1].id) for log in read_folder(tmp_path))
    assert found == [("context", 1), ("fork", 2)]


def test_a_relative_folder_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = opened(Path("profile"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    Path(writer.file.path).unlink()
    writer.write(function(1))  # waits: the file is gone
    writer.file.path = ""
    writer.write(function(2))
    writer.close()
    assert len(list((tmp_path / "profile").iterdir())) == 1
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    "name", ["half a pair \ud83d", "caf\udce9.py", "a\0b\nc\u2028\x1b[2J", "null"]
)
def test_every_name_can_be_written(tmp_path, name):
    writer = opened(tmp_path)
    writer.write(function(1, name))
    writer.close()
    found = only(tmp_path)
    assert found.broken_lines == writer.lost == 0
    assert found.lines[1].name == name.encode("utf-8", "backslashreplace").decode()


def test_a_number_that_is_none_becomes_0(tmp_path):
    writer = opened(tmp_path)
    nowhere = events.Build(1, 1, 1, 1, 1, 1, 1, 2, ())
    for flops in (math.nan, math.inf, 2.0):
        program = events.Program(flops=flops)
        writer.write(replace(nowhere, program=program))
    writer.close()
    assert [line.program.flops for line in only(tmp_path).lines[1:]] == [0.0, 0.0, 2.0]


def test_a_line_that_is_no_json_is_lost_not_raised(tmp_path):
    writer = opened(tmp_path)
    writer.write(function(object()))
    writer.close()
    assert writer.lost == 1


def test_arguments_of_50_000_leaves_are_one_line(tmp_path):
    writer = opened(tmp_path)
    leaves = tuple(events.Leaf(f"p['{n}']", "float32[8]") for n in range(50_000))
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: writer.write(events.Arguments(n, "*", leaves, ())), range(3)))
    writer.close()
    found = only(tmp_path)
    assert [len(line.leaves) for line in found.lines[1:]] == [50_000] * 3


@pytest.mark.parametrize(
    ("name", "why"),
    [("file", "File exists"), ("file/in", "Not a directory"), ("a\0b", "null (byte|character)")],
)
def test_a_folder_that_cannot_be_made_is_said(tmp_path, name, why):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ProfileError, match=f"cannot be written: .*{why}.* Give another one with -o"
    ):
        Writer(tmp_path / name).open()


# --- reading ------------------------------------------------------------------------------------


def whole(folder):
    writer = opened(folder)
    for number in range(3):
        writer.write(function(number))
    writer.close()
    return Path(writer.file.path)


@given(some.binary(max_size=60), some.integers(0, 1_000))
def test_garbage_anywhere_costs_only_the_lines_it_is_in(tmp_path_factory, garbage, at):
    folder = tmp_path_factory.mktemp("log")
    path = whole(folder)
    text = path.read_bytes()
    path.write_bytes(text[:at] + garbage + text[at:])
    if read_file(path) in range(1, 10):  # it is in the first line, which says who wrote it
        assert at <= text.index(b"\n")
        return
    found = only(folder)
    assert len(found.lines) >= 3
    assert found.broken_lines <= garbage.count(b"\n") + 1


@given(some.integers(0, 1_000))
def test_a_file_cut_anywhere_has_its_whole_lines(tmp_path_factory, at):
    folder = tmp_path_factory.mktemp("log")
    path = whole(folder)
    text = path.read_bytes()[:at]
    path.write_bytes(text)
    if text.count(b"\n") == 0 and not text.endswith(b"}"):
        with pytest.raises(ProfileError, match="holds no profile"):
            only(folder)
        return
    found = only(folder)
    assert len(found.lines) in (text.count(b"\n"), text.count(b"\n") + 1)
    assert found.broken_lines <= 1


def named(kind, line, **changed):
    return sealed(json.dumps({"event": kind, **msgspec.to_builtins(line), **changed}).encode())


@pytest.mark.parametrize(
    "line",
    [
        b'{"event":"thunder","at_ns":1}',
        b"[" * 100_000,
        b'{"event":"started","schema":' + b"[" * 100_000,
        *(named("started", STARTED, at_s=at_s) for at_s in (1e300, -1e10, 9.3e9)),
        *(
            named("ended", events.Ended(1, "exit"), at_ns=number)
            for number in (2**62, -(2**63), 2**64, 10**40)
        ),
    ],
    ids=["unknown", "nested", "nested inside", *"SSS", *"EEEE"],
)
def test_a_line_of_no_known_event_or_of_what_no_table_can_hold_is_broken_alone(tmp_path, line):
    path = whole(tmp_path)
    with path.open("ab") as file:
        file.write(line + b"\n" + named("ended", events.Ended(2**62 - 1, "exit", lost=7)) + b"\n")
    found = only(tmp_path)
    assert (found.broken_lines, found.ended.lost) == (1, 7)


@pytest.mark.parametrize("more", [b"", b',"added":1'])
def test_a_newer_release_s_log_is_one_clear_error(tmp_path, more):
    line = msgspec.json.encode({"event": "started", **msgspec.to_builtins(STARTED), "schema": 3})
    (tmp_path / "h-1-0.jsonl").write_bytes(sealed(line.replace(b',"cwd":"/"', more)))
    with pytest.raises(ProfileError, match="written by a newer jax-harness: its format is 3"):
        list(read_folder(tmp_path))


def test_files_that_do_not_say_who_wrote_them_are_counted_with_the_others(tmp_path):
    whole(tmp_path)
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "torn.jsonl").write_bytes(encoded(STARTED)[:50] + b"\n" + b"\xff\xfe\n")
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert only(tmp_path).broken_lines == 3


def test_a_folder_without_a_profile_is_said(tmp_path):
    import harness

    with pytest.raises(ProfileError, match="holds no profile"):
        harness.load_profile(tmp_path)
    (tmp_path / "file").write_text("")
    for name in ("file", "nowhere"):
        with pytest.raises(ProfileError, match="is no folder"):
            harness.load_profile(tmp_path / name)


def test_a_run_that_cannot_be_read_is_left_out_or_said(tmp_path):
    import harness

    whole(tmp_path)
    unreadable = (
        *(b"", b"{", b"[]", b'{"command":["\xff"],"begin_ns":1}'),
        b'{"command":[],"begin_ns":9223372036854775808}',  # more than a table can hold
        b'{"command":[],"begin_ns":1,"schemc":2,"crb32":"00000000"}',  # a wrong bit in both
    )
    for garbage in unreadable:
        (tmp_path / "run.json").write_bytes(garbage)
        profile = harness.load_profile(tmp_path)
        assert profile.run is None
        assert any(line.startswith("run.json is left out: ") for line in damage(profile))
    (tmp_path / "run.json").write_bytes(b'{"command":["a"],"begin_ns":1}')  # of before 0.2.0
    assert harness.load_profile(tmp_path).run.command == ("a",)
    (tmp_path / "run.json").unlink()
    (tmp_path / "run.json").mkdir()
    profile = harness.load_profile(tmp_path)
    assert "run.json is left out: Is a directory." in damage(profile)


def test_a_line_with_a_changed_digit_or_without_its_checksum_is_broken(tmp_path):
    path = whole(tmp_path)
    text = path.read_bytes()
    lines = len(only(tmp_path).lines)
    last = text.splitlines()[-1]
    for damaged in (last.replace(b'"id":', b'"id":1'), last[: last.rindex(b',"crc32"')] + b"}"):
        path.write_bytes(text.replace(last, damaged))
        found = only(tmp_path)
        assert (len(found.lines), found.broken_lines) == (lines - 1, 1)


def test_the_order_of_processes_is_that_in_which_they_began(tmp_path):
    for begin in (30, 10, 20):
        writer = Writer(tmp_path)
        writer.open()
        writer.write(replace(STARTED, clock_ns=begin))
        writer.close()
    assert [found.started.clock_ns for found in read_folder(tmp_path)] == [10, 20, 30]
    assert time.perf_counter_ns() > 30
