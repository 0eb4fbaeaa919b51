import dataclasses
import inspect
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import jax
import numpy as np
import pytest

from harness.cache.ledger import LedgerError, frame, ledger, read, summarize
from harness.errors import UsageError
from harness.jaxhooks import events as codes
from harness.jaxhooks import jax_names, outcomes, programs
from harness.output.ledger import rate_lines
from tests.jaxhooks.programs import ROOT, environment

REASONS = """
import sys, threading, time, filelock, numpy as np, jax
from jax._src import distributed, lru_cache
from jax.experimental.compilation_cache import compilation_cache
from harness.cache.ledger import ledger
book, folder = sys.argv[1:]
x = np.ones((8, 8), np.float32)
def set(**settings):
    for name, value in settings.items():
        jax.config.update("jax_" + name, value)
    compilation_cache.reset_cache()
def compile_as(name, call=lambda x: x @ x + 1):
    def f(x): return call(x)
    f.__name__ = name
    jax.jit(f)(x)
def printing(x):
    jax.debug.print("{}", x[0, 0])
    return x
with ledger(book) as found:
    compile_as("no_directory")
    set(compilation_cache_dir=folder)
    compile_as("below_time")
    set(persistent_cache_min_compile_time_secs=0)
    set(persistent_cache_min_entry_size_bytes=10**6)
    compile_as("below_size")
    set(persistent_cache_min_entry_size_bytes=0)
    compile_as("written")
    jax.clear_caches()
    compile_as("written")
    compile_as("printing", printing)
    put = lru_cache.LRUCache.put
    def put_second(cache, key, value):
        (cache.path / f"{key}-cache").write_bytes(value)
        put(cache, key, value)
    lru_cache.LRUCache.put = put_second
    compile_as("raced")
    lru_cache.LRUCache.put = put
    distributed.global_state.process_id = 1
    compile_as("second_process")
    distributed.global_state.process_id = 0
    set(compilation_cache_max_size=10)
    compile_as("over_cap")
    set(compilation_cache_max_size=10**9, compilation_cache_dir=folder + "-capped")
    compile_as("capped")
    held, asked = threading.Event(), threading.Event()
    def hold():
        with filelock.FileLock(folder + "-capped/.lockfile"):
            held.set()
            asked.wait()
            time.sleep(0.2)
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    acquire = filelock.FileLock._acquire
    filelock.FileLock._acquire = lambda lock: asked.set() or acquire(lock)
    compile_as("locked")
    filelock.FileLock._acquire = acquire
    holder.join()
    set(compilation_cache_max_size=-1, enable_compilation_cache=False)
    compile_as("disabled")
    set(enable_compilation_cache=True, compilation_cache_dir="/dev/null/nowhere")
    compile_as("unusable")
    set(compilation_cache_dir=folder)
    compile_as("torn")
    import pathlib
    [entry] = pathlib.Path(folder).glob("jit_torn-*-cache")
    entry.write_bytes(entry.read_bytes()[:50])
    jax.clear_caches()
    compile_as("torn")
    entry.unlink()
    entry.mkdir()
    entry.rmdir()
    pathlib.Path(folder).rename(folder + ".gone")
    compile_as("write_error")
assert not found.failures, found.failures
"""


@pytest.fixture(scope="module")
def reasons(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reasons")
    words = [sys.executable, "-c", REASONS, folder / "book.jsonl", folder / "cache"]
    subprocess.run(words, env=environment(), check=True, timeout=120)
    events = {}
    for event in read(folder / "book.jsonl").events:
        events.setdefault(event.module.removeprefix("jit_"), []).append(event)
    return events


@pytest.mark.parametrize(
    ("module", "reason", "detail", "limit"),
    [
        ("no_directory", codes.NO_DIRECTORY, "", 1.0),
        ("below_time", codes.BELOW_TIME, "", 1.0),
        ("below_size", codes.BELOW_SIZE, "", 1_000_000),
        ("second_process", codes.NOT_PROCESS_0, "", None),
        ("raced", codes.ALREADY_THERE, "", None),
        ("over_cap", codes.OVER_CAP, "", 10),
        ("disabled", codes.DISABLED, codes.SWITCHED_OFF, 0.0),
        ("unusable", codes.UNUSABLE_DIRECTORY, "Not a directory", 0.0),
        ("write_error", codes.ERROR, "FileNotFoundError", None),
    ],
)
def test_a_miss_that_was_not_written_says_why(reasons, module, reason, detail, limit):
    [event] = reasons[module]
    assert (event.outcome, event.reason, event.limit) == ("unwritten", reason, limit)
    assert event.bytes_out == 0
    assert detail in event.detail if detail else event.detail == ""
    if event.value is not None and limit is not None:
        assert (event.value > limit) == (reason == codes.OVER_CAP)
    assert reasons["second_process"][0].value == 1


def test_a_write_and_then_a_hit_carry_their_bytes_and_seconds(reasons):
    written, hit = reasons["written"]
    assert (written.outcome, hit.outcome) == ("written", "hit")
    assert written.bytes_out == written.entry_bytes == hit.bytes_in > 0
    assert min(written.compile_ns, hit.load_ns) > 0
    assert hit.compile_ns == 0
    assert hit.stored_compile_s == written.compile_ns // 10**9  # JAX stores whole seconds
    saved_ns = 1e9 * hit.stored_compile_s - hit.load_ns
    assert hit.jax_saved_ns == pytest.approx(saved_ns, abs=1e8)
    assert written.compile_ns <= written.request_ns


def test_a_host_callback_is_written_since_jax_0_11(reasons):
    event = reasons["printing"][-1]
    if jax_names.version().startswith("0.10."):
        assert (event.outcome, event.reason) == ("unwritten", "host callback")
    else:
        assert event.outcome == "written"


def test_a_torn_entry_is_a_read_error_and_stays_in_the_place(reasons):
    written, torn = reasons["torn"]
    assert written.outcome == "written"
    assert torn.reason == "an unreadable file is in the place"
    assert "error" in torn.read_error.lower()
    assert torn.bytes_in == 50


def test_the_wait_for_the_lock_of_a_capped_cache_is_in_the_event(reasons):
    [free], [locked] = reasons["capped"], reasons["locked"]
    assert free.outcome == locked.outcome == "written"
    assert 0 < free.lock_wait_ns < free.load_ns + free.write_ns
    # Another holds it for 0.2 s from when it is asked for.
    assert 2e8 <= locked.lock_wait_ns < locked.load_ns + locked.write_ns
    assert reasons["over_cap"][0].lock_wait_ns > 0
    assert reasons["written"][0].lock_wait_ns == 0  # without a cap there is no lock


def test_a_jax_without_filelock_has_no_lock_to_watch(fresh, monkeypatch):
    monkeypatch.setattr(jax_names.file_cache(), "filelock", None)
    with ledger() as found:
        fresh()
    assert [event.lock_wait_ns for event in found.events] == [0]
    assert found.failures == []


def test_a_component_that_was_not_captured_would_be_noticed(fresh, monkeypatch):
    real = jax_names.module("cache_key").get
    other = Mock(side_effect=lambda *a, **k: real(*a, **k)[:-6] + "edited")
    other.__signature__ = inspect.signature(real)
    monkeypatch.setattr(jax_names.module("cache_key"), "get", other)
    with ledger() as found:
        fresh()
    assert [event.key_is_proven for event in found.events] == [False]
    assert summarize(found.events).unproven_keys == 1


def test_the_captured_components_give_jaxs_key_and_rates_are_shown_by_both_numbers(reasons):
    events = [event for found in reasons.values() for event in found]
    assert all(event.key_is_proven for event in events)
    assert all(len(event.components) >= 8 for event in events if event.key)
    found = summarize(events)
    assert found.requests == len(events) == found.by_count.denominator
    assert found.hits == 1 == found.by_count.numerator
    assert found.hits + found.written + sum(found.unwritten.values()) + found.failed == len(events)
    assert found.read_errors == 2  # the torn entry, the directory that cannot be made
    assert found.write_errors == 1
    written, hit = reasons["written"]
    assert found.saved_s == pytest.approx((written.compile_ns - hit.load_ns) / 1e9)
    assert found.by_seconds.numerator == pytest.approx(written.compile_ns / 1e9)
    rows = frame(events)
    assert str(rows["at"].dt.tz) == "UTC"
    assert len(rows) == len(events)
    assert rows.saved_s.sum() == pytest.approx(found.saved_s)


def test_a_hit_without_a_cold_figure_is_not_counted_as_saved(reasons):
    written, hit = reasons["written"]
    hit = dataclasses.replace(hit, stored_compile_s=0)
    alone = summarize([hit])
    assert (alone.saved_s, alone.hits_without_cold) == (0, 1)
    assert alone.by_seconds.value is None
    assert alone.unknown_s == (0, 1)  # of a compile that took less than one
    lines = "\n".join(rate_lines(alone))
    assert "Hit rate by seconds: 100 % (nothing was compiled)" in lines
    assert "what 1 hit saved is unknown" in lines
    mixed = summarize([hit, dataclasses.replace(written, key="other", compile_ns=3 * 10**9)])
    assert "0.0 % to 25.0 % (0.000 to 1.000 s by hits, 3.000 s not)" in "\n".join(rate_lines(mixed))
    silent = dataclasses.replace(hit, stored_compile_s=None)
    assert "unknown, 0.0 % or more" in "\n".join(rate_lines(summarize([silent])))
    saved_s = pytest.approx((written.compile_ns - hit.load_ns) / 1e9)
    assert summarize([hit], earlier=[written]).saved_s == saved_s


@pytest.fixture
def fresh():
    """A function that no test has compiled."""
    made = iter(range(1000))

    def compile_one(name="own"):
        def f(x):
            return x * 2 + next(made)

        f.__name__ = name
        return jax.jit(f)(np.ones(3, np.float32))

    return compile_one


def test_a_failure_inside_the_ledger_is_counted_and_does_not_reach_the_program(fresh, monkeypatch):
    monkeypatch.setattr(outcomes, "request_of", lambda *_: 1 / 0)
    with ledger() as found:
        assert fresh().shape == (3,)
    assert found.events == []
    assert found.failures == ["ZeroDivisionError: division by zero"]


def test_a_failing_compile_still_raises_and_is_an_event(fresh, monkeypatch):
    refused = Mock(side_effect=RuntimeError("XLA says no"))
    monkeypatch.setattr(jax_names.module("compiler"), "backend_compile_and_load", refused)
    with ledger() as found, pytest.raises(RuntimeError, match="XLA says no"):
        fresh("doomed")
    [event] = found.events
    assert (event.outcome, event.detail) == ("failed", "RuntimeError: XLA says no")
    assert summarize(found.events).failed == 1


def test_each_thread_has_its_own_request(fresh):
    with ledger() as found, ThreadPoolExecutor(8) as pool:
        list(pool.map(fresh, [f"thread_{number}" for number in range(8)]))
    assert found.failures == []
    assert sorted(event.module for event in found.events) == [f"jit_thread_{i}" for i in range(8)]
    assert all(event.key.startswith(event.module) for event in found.events)
    assert all(event.key_is_proven for event in found.events)


def test_a_torn_line_is_counted_and_the_next_writer_starts_a_new_one(tmp_path, fresh):
    path = tmp_path / "book.jsonl"
    with ledger(path):
        fresh("first")
    path.write_bytes(path.read_bytes() + path.read_bytes()[:100])
    with ledger(path):
        fresh("second")
    book = read(path)
    assert [event.module for event in book.events] == ["jit_first", "jit_second"]
    assert book.broken_lines == 1


@pytest.mark.parametrize("number", [{"at_s": 1e300}, {"at_s": -1}, {"bytes_in": 2**63}])
def test_a_number_that_no_program_has_makes_no_event(tmp_path, number):
    event = {"schema": 1, "at_s": 1e9, "pid": 1, "host": "a", "jax": "0.10.2", "module": "jit_f"}
    event["outcome"] = "hit"
    path = tmp_path / "book.jsonl"
    path.write_text(f"{json.dumps(event)}\n{json.dumps({**event, **number})}\n")
    book = read(path)
    assert (len(book.events), book.broken_lines) == (1, 1)


def test_a_file_that_is_no_ledger_says_so(tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"hello\n\xff\n")
    with pytest.raises(LedgerError, match=r"is no recording: none of its 2 lines"):
        read(tmp_path / "notes.txt")
    with pytest.raises(UsageError, match=r"cannot be read: No such file"):
        read(tmp_path / "nothing")
    with pytest.raises(LedgerError, match=r"cannot be written: .*folder that exists"):
        ledger(tmp_path / "no" / "book.jsonl").__enter__()


PROGRAM = """
import os, subprocess, sys
import numpy as np
os.environ["XLA_FLAGS"] = "--xla_cpu_enable_fast_math=true"  # too late if JAX were there already
import jax
import own_site
print(jax.jit(lambda x: x * 2)(np.ones(2, np.float32)), sys.stdin.read(), sys.argv[1:])
if "parent" in sys.argv:
    subprocess.run([sys.executable, __file__, "child"], stdin=subprocess.DEVNULL, check=False)
sys.exit(7)
"""


def test_a_program_runs_unchanged_with_its_children_and_its_exit_code(tmp_path, command):
    """Also: an existing sitecustomize still runs, and nothing is lost to it."""
    site = "import sys, types\nsys.modules['own_site'] = types.ModuleType('own_site')\n"
    (tmp_path / "sitecustomize.py").write_text(site)
    (tmp_path / "program.py").write_text(PROGRAM)
    variables = environment(
        PYTHONPATH=os.pathsep.join((str(tmp_path), str(ROOT))),
        JAX_COMPILATION_CACHE_DIR=str(tmp_path / "cache"),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        PYTHONUNBUFFERED="1",
    )
    words = ["-m", "harness", "cache", "ledger", "-o", "book.jsonl", "--", "program.py", "parent"]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        env=variables,
        input="said",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == ["[2. 2.] said ['parent']", "[2. 2.]  ['child']"]
    assert "book.jsonl: 1 of 2 compiles were hits" in done.stderr
    parent, child = read(tmp_path / "book.jsonl").events
    assert (parent.outcome, child.outcome) == ("written", "hit")
    assert parent.pid != child.pid
    [flags] = [part.values for part in parent.components if part.name == "XLA flags"]
    assert flags == ("--xla_cpu_enable_fast_math=true",)

    rows = tmp_path / "rows.csv"
    code, told, _ = command("cache", "ledger", "--frame", rows, tmp_path / "book.jsonl")
    assert code == 0
    assert "1 of 2 compiles were hits" in told
    assert len(rows.read_text().splitlines()) == 3


def test_a_program_that_a_signal_ends_is_128_and_its_number(tmp_path):
    code = programs.run_with_ledger(
        ["-c", "import os; os.kill(os.getpid(), 15)"], tmp_path / "book.jsonl"
    )
    assert code == 128 + signal.SIGTERM
    assert programs.signal_of(code) == "SIGTERM"
    assert read(tmp_path / "book.jsonl").events == ()


@pytest.mark.parametrize(
    ("place", "text"), [("file/rows.csv", "cannot be written"), ("rows.txt", ".csv or .parquet")]
)
def test_rows_that_cannot_be_written_are_refused_before_the_program_runs(
    tmp_path, place, text, command
):
    (tmp_path / "file").touch()
    book = tmp_path / "book"
    words = ("-o", book, "--frame", tmp_path / place, "--", "-c", "print('ran')")
    code, _, said = command("cache", "ledger", *words)
    assert (code, text in said) == (2, True)
    assert not book.exists()
