"""What a program builds is recorded, in all of its processes, whatever else it does."""

import os
import subprocess
import threading

import pytest

from harness.cache.ledger import read as read_ledger
from harness.jaxhooks import events, programs
from harness.profiles.recorded import read
from tests.jaxhooks.programs import COMMAND, built, environment, followed, how

HOSTILE = """
import sys
before = set(sys.modules)
assert "harness" not in before and "jax" not in before, before
import os, resource, signal, tempfile, threading, time
import jax, numpy as np

def raising(*args, **kwargs):
    raise RuntimeError("a listener of its own")

jax.monitoring.clear_event_listeners()
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", tempfile.mkdtemp())
os.closerange(3, 4096)
barrier = threading.Barrier(4)

def build(number):
    def in_a_thread(x):
        return x * number
    barrier.wait()
    jax.jit(in_a_thread)(np.ones(number))

def in_no_directory(x):
    return x + 2

threads = [threading.Thread(target=build, args=(n + 2,)) for n in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
time.sleep(1.2)
jax.clear_caches()
jax.monitoring.register_event_duration_secs_listener(raising)
try:
    jax.jit(lambda x: x + 1)(1.0)
except RuntimeError as error:
    assert "of its own" in str(error)
assert not [t.name for t in threading.enumerate() if t.name.startswith("Thread")]
gone = tempfile.mkdtemp()
os.chdir(gone)
os.rmdir(gone)
jax.monitoring.clear_event_listeners()
jax.jit(in_no_directory)(1.0)
def on_a_full_disk(x):
    return x + 3

soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
jax.config.update("jax_enable_compilation_cache", False)
jax.jit(on_a_full_disk)(1.0)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
sys.stdout.buffer.write(b"\\xff\\n")
"""


@pytest.mark.nightly
def test_a_program_that_changes_jax_and_its_process_is_recorded_to_the_end(tmp_path, capfdbinary):
    code, profile = followed(tmp_path / "p", "-c", HOSTILE)
    told = capfdbinary.readouterr()
    assert (code, told.out) == (0, b"\xff\n"), told.err.decode()
    [process] = profile.processes
    lines = built(process, "in_a_thread")
    assert len({line.thread for line in lines}) == 4
    assert len(built(process, "in_no_directory")) == 1
    assert len(built(process, "on_a_full_disk")) == 1
    [imported] = process.of(events.Import)
    [backend] = process.of(events.Backend)
    assert process.started.clock_ns < imported.begin_ns < imported.end_ns < backend.begin_ns
    assert backend.platform == "cpu"
    assert backend.end_ns > backend.begin_ns
    assert backend.devices
    assert set(imported.versions) == {"jax", "jaxlib"}
    assert imported.without_bytecode == ""
    seen = [count for line in process.of(events.Samples) for count in line.counts]
    main = [samples for thread, _, _, samples in seen if thread == process.started.main_thread]
    assert sum(main) >= 20
    assert process.ended.why == "exit"
    assert process.ended.lost == 0
    assert process.ended.own_ns > 0


FAMILY = """
import multiprocessing, os, sys
import numpy as np
import jax

def build(name):
    def function(x):
        return x + 1
    function.__name__ = name
    jax.jit(function)(np.ones(3))

# The fork comes before JAX has threads, which are not in the child.
process = multiprocessing.get_context("fork").Process(target=build, args=("forked",))
process.start()
process.join(20)
process.kill()
build("own")
os.execv(sys.executable, [sys.executable, "-c", "import jax; jax.jit(abs)(1)"])
"""


@pytest.mark.nightly
def test_every_process_of_a_family_has_its_own_builds(tmp_path):
    code, profile = followed(tmp_path / "p", "-c", FAMILY)
    assert code == 0
    assert how(profile) == ["command"] * 2 + ["fork"]
    ended = {"forked": ("fork", "exit"), "own": ("command", "exec"), "abs": ("command", "exit")}
    for name, (began, why) in ended.items():
        [process] = [process for process in profile.processes if built(process, name)]
        assert (process.started.how, process.ended.why) == (began, why)
        assert (process.started.pid == profile.run.pid) == (name != "forked")
        [line] = built(process, name)
        assert [span.times for span in line.spans if span.stage == "compile"] == [1]


HANGING = """
import time, jax
def never(x):
    print("tracing", flush=True)
    time.sleep(60)
    return x
jax.jit(lambda x: x + 1)(1.0)
jax.jit(never)(1.0)
"""


def test_a_program_killed_in_a_build_shows_which(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "-o", str(tmp_path / "p"), "--", "-c", HANGING],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        process.stdout.readline()
        # Longer than a build may take before it is written down while it goes on.
        threading.Event().wait(1.7)
        pid = read(tmp_path / "p").run.pid
        os.kill(pid, 9)
        process.communicate()
    assert process.returncode == 128 + 9
    [found] = read(tmp_path / "p").processes
    assert found.ended is None
    assert len(found.of(events.Build)) >= 1
    running = found.of(events.Running)  # a busy machine may be long at what came before, too
    lines = [line for line in running if found.functions[line.function].name == "never"]
    assert 1 <= len(lines) <= 3
    assert {line.stage for line in lines} == {"trace"}
    assert found.stacks[lines[0].stack].frames[-1].line == 8


LATE = """
import atexit, os
try:
    import jax.no_such
except ImportError as error:
    print(error)
import jax
atexit.register(print, "handled")
os.closerange(3, 4096)
jax.jit(abs)(1)
atexit._run_exitfuncs()
jax.jit(abs)(1.0)
"""


@pytest.mark.nightly
def test_a_ledger_and_a_profile_follow_a_program_past_its_exit_handlers(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setenv("HARNESS_LEDGER", str(tmp_path / "book.jsonl"))
    code, profile = followed(tmp_path / "p", "-c", LATE, sample_ms=0)
    assert code == 0
    assert capfd.readouterr().out == "No module named 'jax.no_such'\nhandled\n"
    book = read_ledger(tmp_path / "book.jsonl")
    requests = [request.module for built in profile.builds for request in built.line.requests]
    assert requests == [event.module for event in book.events] == ["jit_abs"] * 2
    [process] = profile.processes
    assert process.ended.why == "exit"
    assert not process.of(events.Samples)  # 0 is never
    assert len(process.of(events.Import)) == 1


def test_a_python_with_another_jax_runs_all_the_same(tmp_path, capfd):
    (tmp_path / "jax.py").write_text("__version__ = '0'\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import jax; print(jax.__file__)"
    found, profile = followed(tmp_path / "p", "-c", code)
    told = capfd.readouterr()
    assert (found, told.out) == (0, f"{tmp_path / 'jax.py'}\n")
    assert "this process has no profile" in told.err
    [process] = profile.processes
    assert len(process.ended.failures) == 1


def test_the_bootstrap_is_first_and_there_once():
    first = programs.environment({"PYTHONPATH": "a::b"}, OWN="1")
    again = programs.environment(first)
    assert again == first
    assert first["PYTHONPATH"].split(os.pathsep) == [str(programs.BOOTSTRAP), "a", "b"]
    assert first["OWN"] == "1"
