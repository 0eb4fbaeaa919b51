"""The log's writer and reader, whatever the disk, the program and the file do."""

import contextlib
import json
import math
import os
import resource
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

import harness
from harness.cache import ledger
from harness.errors import ProfileError, UsageError
from harness.jaxhooks import events, log_file
from harness.jaxhooks.events import SCHEMA
from harness.jaxhooks.log_file import is_sealed, sealed
from harness.jaxhooks.writer import Writer, encoded
from harness.profiles.figures import Defect, damage
from harness.profiles.recorded import read_file, read_folder
from tests.jaxhooks.recorded import STARTED, function, only, opened, written


@contextlib.contextmanager
def room(size):
    """RLIMIT_FSIZE stands for a full disk; Python ignores its signal."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_lines_wait_for_a_full_disk_and_none_is_torn(tmp_path):
    writer = opened(tmp_path)
    with room(1_000):
        for number in range(50):
            writer.write(function(number))
        assert Path(writer.file.path).stat().st_size == 1_000
    writer.write(events.Ended(1, "exit", lost=writer.lost))
    writer.close()
    found = only(tmp_path)
    assert [line.id for line in found.lines[1:-1]] == list(range(50))
    assert found.lines[-1].lost == 0
    assert found.broken_lines == 0


def test_lines_that_find_no_room_in_time_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(log_file, "MOST_WAITING", 20)
    writer = opened(tmp_path)
    with room(Path(writer.file.path).stat().st_size + 10):
        for number in range(100):
            writer.write(function(number))
    assert 60 < writer.lost < 100
    writer.write(events.Ended(1, "exit", lost=writer.lost))
    writer.close()
    found = only(tmp_path)
    assert found.lines[-1].lost == 100 - (len(found.lines) - 2)


def test_what_is_still_waiting_at_the_end_is_lost_and_its_last_line_torn(tmp_path):
    with room(300):
        writer = written(tmp_path, *map(function, range(20)))
    found = only(tmp_path)
    assert len(found.lines) - 1 + writer.lost == 20
    assert found.broken_lines == 1


def test_a_file_of_the_programs_under_our_number_gets_no_line_and_none_is_lost(tmp_path):
    writer = opened(tmp_path / "profile")
    with (tmp_path / "own").open("wb") as own:
        os.dup2(own.fileno(), writer.file._descriptor)
        writer.write(function(1))
        writer.close()
    assert (tmp_path / "own").read_bytes() == b""
    assert only(tmp_path / "profile").lines[1:] == (function(1),)


def test_a_late_thread_writes_to_a_closed_log(tmp_path):
    writer = written(tmp_path)
    writer.write(function(1))
    writer.close()
    writer.close()
    assert writer.lost == 0
    assert len(only(tmp_path).lines) == 2


def test_threads_and_signal_handlers_write_at_once(tmp_path):
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


# JAX says, and rightly, that its threads are not in the child; this one needs none of them.
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_child_leaves_its_parents_file_alone(tmp_path):
    writer = opened(tmp_path)
    child = os.fork()
    if not child:
        writer.file.after_fork()
        writer.write(function(2))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    writer.write(function(1))
    writer.close()
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
    writer = written(tmp_path, function(1, name))
    found = only(tmp_path)
    assert found.broken_lines == writer.lost == 0
    assert found.lines[1].name == name.encode("utf-8", "backslashreplace").decode()


def test_a_number_that_is_none_becomes_0(tmp_path):
    nowhere = events.Build(1, 1, 1, 1, 1, 1, 1, 2, ())
    given = (events.Program(flops=flops) for flops in (math.nan, math.inf, 2.0))
    written(tmp_path, *(replace(nowhere, program=program) for program in given))
    assert [line.program.flops for line in only(tmp_path).lines[1:]] == [0.0, 0.0, 2.0]


def test_a_line_that_is_no_json_is_lost_not_raised(tmp_path):
    assert written(tmp_path, function(object())).lost == 1


@pytest.mark.nightly
def test_arguments_of_50_000_leaves_are_one_line(tmp_path):
    writer = opened(tmp_path)
    leaves = tuple(events.Leaf(f"p['{n}']", "float32[8]") for n in range(50_000))
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: writer.write(events.Arguments(n, leaves, ())), range(3)))
    writer.close()
    found = only(tmp_path)
    assert [len(line.leaves) for line in found.lines[1:]] == [50_000] * 3


@pytest.mark.parametrize(
    ("name", "why"),
    [("file", "File exists"), ("file/in", "Not a directory"), ("a\0b", "null (byte|character)")],
)
def test_a_folder_that_cannot_be_made_is_said(tmp_path, name, why):
    (tmp_path / "file").write_text("")
    said = f"cannot be written: .*{why}.* Give another one with -o"
    with pytest.raises(ProfileError, match=said):
        Writer(tmp_path / name).open()


# --- reading ------------------------------------------------------------------------------------


def whole(folder):
    return Path(written(folder, *map(function, range(3))).file.path)


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
    newer = {**msgspec.to_builtins(STARTED), "schema": SCHEMA + 1}
    line = msgspec.json.encode({"event": "started", **newer})
    (tmp_path / "h-1-0.jsonl").write_bytes(sealed(line.replace(b',"cwd":"/"', more)))
    with pytest.raises(ProfileError, match=f"newer jax-harness: its format is {SCHEMA + 1}"):
        list(read_folder(tmp_path))


def test_files_that_do_not_say_who_wrote_them_are_counted_with_the_others(tmp_path):
    whole(tmp_path)
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "torn.jsonl").write_bytes(encoded(STARTED)[:50] + b"\n" + b"\xff\xfe\n")
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert only(tmp_path).broken_lines == 3


def test_a_folder_without_a_profile_is_said(tmp_path):
    with pytest.raises(ProfileError, match="holds no profile"):
        harness.load_profile(tmp_path)
    (tmp_path / "file").write_text("")
    for name in ("file", "nowhere"):
        with pytest.raises(UsageError, match="is no folder"):
            harness.load_profile(tmp_path / name)


def test_a_run_that_cannot_be_read_is_left_out_or_said(tmp_path):
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
        assert any(one.names[0].startswith("run.json is left out: ") for one in damage(profile))
    (tmp_path / "run.json").write_bytes(
        b'{"command":["a"],"begin_ns":1}'
    )  # of a schema without one
    assert harness.load_profile(tmp_path).run.command == ("a",)
    (tmp_path / "run.json").unlink()
    (tmp_path / "run.json").mkdir()
    profile = harness.load_profile(tmp_path)
    assert Defect("run", names=("run.json is left out: Is a directory.",)) in damage(profile)


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


# --- of an earlier release ------------------------------------------------------------------------

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("schema", [1, 2])
def test_every_request_in_a_ledger_of_before_is_read_in_nanoseconds(schema, tmp_path):
    earlier = [json.loads(line) for line in (DATA / "ledger.jsonl").read_bytes().splitlines()]
    lines = [json.dumps({**one, "schema": schema}).encode() for one in earlier]
    lines = [sealed(line) if schema == 2 else line for line in lines]
    path = tmp_path / "old.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n" + lines[0][:-9])
    book = ledger.read(path)
    assert (len(book.events), book.broken_lines) == (len(earlier), 1)
    for before, request in zip(earlier, book.events, strict=True):
        for name in ("pid", "host", "module", "outcome", "key", "reason", "directory", "at_s"):
            assert getattr(request, name) == before.get(name, ""), name
        for name in ("request", "compile", "load", "write", "key"):
            seconds = before.get(f"{name}_s") or 0.0
            assert getattr(request, f"{name}_ns") == round(1e9 * seconds)
        names = [component["name"] for component in before.get("components", ())]
        assert [component.name for component in request.components] == names
    new = tmp_path / "new.jsonl"
    new.write_bytes(b"".join(map(encoded, book.events)))
    assert ledger.read(new).events == book.events


def test_every_line_of_an_earlier_release_is_read_and_written_alike(tmp_path):
    file = "profile.jsonl"
    earlier = [json.loads(line) for line in (DATA / file).read_bytes().splitlines()]
    found = read_file(DATA / file).lines
    written = [encoded(line) for line in found]
    (tmp_path / file).write_bytes(b"".join(written))
    assert read_file(tmp_path / file).lines == found
    for before, line in zip(earlier, written, strict=True):
        assert is_sealed(line.rstrip())
        now = json.loads(line)
        del now["crc32"]
        assert {**before, **now} == before  # what is usual is no longer written; in any order
