"""Programs that do what programs should not, under `harness profile -- ...`."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

import harness

HARNESS = [sys.executable, "-m", "harness", "profile"]


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def run(tmp_path, code, *options):
    """Run a program without `__file__` under a profile."""
    folder = str(tmp_path / "profile")
    return subprocess.run(
        [*HARNESS, "-o", folder, *options, "--", sys.executable, "-c", code],
        capture_output=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
        env=environment(),
    )


ODD = """
import os, resource, signal, sys
os.closerange(3, 1024)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
import jax, numpy as np
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
def raising(*_, **__): raise KeyError("own")
def made(size): return jax.jit(lambda x: x * 2)(np.ones(size))
made(3)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
made(4)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
os.chdir("/")  # where JAX shows an error, it asks for the working directory
jax.monitoring.register_event_duration_secs_listener(raising)
try:
    made(5)
except KeyError as error:
    sys.stdout.buffer.write(bytes(range(256)) + repr(error).encode())
jax.monitoring.clear_event_listeners()
made(6)
sys.stdout.flush()
sys.stderr.buffer.write(b"\\xff\\x00\\x1b\\n")
sys.stderr.flush()
sys.exit(3)
"""


def test_an_odd_program_is_run_as_it_is_and_recorded(tmp_path):
    """No `__file__`, no working directory, closed files, a full disk, binary output, listeners."""
    done = run(tmp_path, ODD)
    assert done.returncode == 3, done.stderr[-3000:]
    assert done.stdout == bytes(range(256)) + b"KeyError('own')"
    assert b"\xff\x00\x1b\n" in done.stderr
    found = harness.load_profile(tmp_path / "profile")
    sizes = [b.arguments.leaves[0].aval[-3:] for b in found.builds if b.times("compile")]
    assert [size for size in sizes if size != "[5]"] == ["[3]", "[4]", "[6]"]
    assert found.broken_lines == 0
    assert found.run.exit_code == 3


FORKS = """
import os, sys, threading
import jax, numpy as np
def made(size): return jax.jit(lambda x: x * 2)(np.ones(size))
made(3)
if not os.fork():
    os._exit(0)
os.wait()
threads = [threading.Thread(target=made, args=(10 + n,)) for n in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
os.kill(os.getpid(), 9)
"""


def test_a_program_that_forks_compiles_in_threads_and_is_killed_has_its_profile(tmp_path):
    done = run(tmp_path, FORKS)
    assert done.returncode == 128 + signal.SIGKILL
    found = harness.load_profile(tmp_path / "profile")
    compiled = [built for built in found.builds if built.times("compile")]
    assert len(compiled) == 5
    assert len({built.line.thread for built in compiled}) == 5
    assert compiled[0].process.ended is None
    assert found.broken_lines == 0


@pytest.mark.parametrize("name", ["file", "file/in", "/proc/nowhere"])
def test_nothing_is_run_where_the_profile_cannot_be_written(tmp_path, name):
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [*HARNESS, "-o", name, "--", sys.executable, "-c", "print('ran')"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"-o {name}" in done.stderr


def test_two_commands_do_not_share_a_folder(tmp_path):
    assert run(tmp_path, "pass").returncode == 0
    done = run(tmp_path, "print('ran')")
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"not empty" in done.stderr


HANGS = """
import sys, time
import jax, numpy as np
def slow(x):
    print("begins", flush=True)
    time.sleep(2.2)
    return x
jax.jit(slow)(np.ones(3))
"""


def test_a_build_that_hangs_is_seen_within_two_seconds(tmp_path):
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [*HARNESS, "--live", "-o", str(tmp_path / "profile"), "--", sys.executable, "-c", HANGS],
        stdout=inner,
        stderr=inner,
        env={**environment(), "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"},
    )
    os.close(inner)
    text, begin, seen = "", 0.0, 0.0
    while True:
        try:
            more = os.read(outer, 65536).decode()
        except OSError:  # the other end was closed
            break
        if not more:
            break
        text += more
        begin = begin or ("begins" in text and time.monotonic())
        seen = seen or ("tracing `slow` (<string>:8)" in text and time.monotonic())
    os.close(outer)
    assert process.wait() == 0
    assert seen, text
    # How soon is timing: a busy machine may take longer, but it was while the function slept.
    assert seen > begin
