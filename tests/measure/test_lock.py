"""Who measures on a machine waits for others who do, and a killed one holds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from harness.errors import UsageError
from harness.measure import lock
from harness.measure.child import Child
from harness.measure.lock import alone, measuring, processor
from tests.sweeps import SUITES, sweep, workload

Scale = workload("small", "Scale")

HOLDS = """
import time
from harness.measure.lock import alone, processor
with alone([processor()], print):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """Locks of the test's own."""
    monkeypatch.setenv("HARNESS_LOCKS", str(tmp_path))


@pytest.fixture
def holder():
    """A process that holds this machine."""
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"held\n"
        yield running
        running.kill()


def test_a_sweep_waits_for_who_measures_says_for_whom_and_goes_on_when_that_is_killed(
    holder, tmp_path
):
    with pytest.raises(UsageError, match=rf"^process {holder.pid} \(.*measures on this machine"):
        sweep([Scale], tmp_path / "results", wait=False)
    told = []

    def on_progress(message):
        if message.warning.startswith("removed"):
            return  # what others on this machine have left
        told.append(message)
        if message.warning:
            holder.send_signal(signal.SIGKILL)

    outcome = sweep([Scale], tmp_path / "results", on_progress=on_progress)
    warnings = [one.warning for one in told if one.warning]
    waiting, waited = warnings
    assert f"waiting: process {holder.pid} (" in waiting
    assert waited.startswith("waited ")
    assert waiting == told[0].warning, "nothing is measured before"
    assert outcome.measured == 2

    with alone([processor()], print):  # what is measured already waits for nobody
        again = sweep([Scale], tmp_path / "results", wait=False)
    assert (again.measured, again.reused) == (0, 2)


BENCHMARKS = ("--benchmarks", SUITES / "troubled")


@pytest.mark.parametrize(
    "words",
    [
        ("run", "Scale", *BENCHMARKS),
        ("aa", "--select", "Scale", "--pairs", "1", *BENCHMARKS),
        ("compare", ".", ".", "--live", "--select", "Scale", *BENCHMARKS),
        ("compile", "small.Scale", "--case", "size=8", *BENCHMARKS),
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_every_command_that_measures_ends_where_it_is_not_to_wait(
    holder, words, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_WAIT", "0")
    code, _, said = command(*words)
    assert code == 2, said
    assert f"harness: process {holder.pid} (" in said
    assert "measures on this machine, and two at once would disturb each other" in said
    assert "Traceback" not in said


def test_two_who_wait_measure_one_after_the_other(monkeypatch):
    monkeypatch.setattr(lock, "LOOK_S", 0.01)
    inside, most = [], []

    def hold(_):
        with alone([processor()], lambda holder: None):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.05)
            inside.pop()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(hold, range(8)))
    assert most == [1] * 8


def refused():
    """Whom one hears of who will not wait, "" for nobody."""
    try:
        with measuring(print, wait=False):
            return ""
    except UsageError as error:
        return str(error)


def killed(script):
    """Kill a script that has started a child; return its number, and the child."""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as running:
        child = psutil.Process(int(running.stdout.readline()))
        running.kill()
    return running.pid, child


STARTS = """
import sys
from harness.measure import lock
from harness.measure.child import Child
from harness.measure.lock import measuring
with measuring(lambda said: None):
    child = Child([sys.executable, "-c", "import time; time.sleep(600)"])
    print(child.pid, flush=True)
    child.wait()
"""


def test_what_a_killed_one_has_started_ends_and_holds_the_machine_no_more():
    _, child = killed(STARTS)
    said = []
    with measuring(said.append, wait=False):
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert said[:1] == ["ended 1 process that killed commands had started"]


STARTS_UNMARKED = """
import subprocess, sys
from harness.measure.lock import for_children, measuring
with measuring(lambda said: None):  # such as what other commands have left
    child = subprocess.Popen(["sleep", "600"], env={}, pass_fds=for_children()[0])
    print(child.pid, flush=True)
    child.wait()
"""


def test_a_holder_that_nobody_has_marked_is_told_by_its_number():
    pid, child = killed(STARTS_UNMARKED)
    assert refused().startswith(f"what process {pid} started, which is gone, measures on")
    child.kill()


WORKS_FOR = """
import subprocess, sys
from harness.measure.lock import measuring
with measuring(print, wait=False):
    sys.exit(subprocess.call(sys.argv[1:]))
"""


def test_what_a_command_starts_does_not_wait_for_it_and_others_do():
    inner = [sys.executable, "-c", WORKS_FOR, "true"]
    with measuring(print), measuring(print, wait=False):
        # One between them hands no files on, as asv does.
        with Child([sys.executable, "-c", WORKS_FOR, *inner]) as child:
            assert child.wait() == 0, child.output
        for holders in ({}, {lock._HOLDERS: "1"}):
            there = {**os.environ, **holders}
            ran = subprocess.run(inner, capture_output=True, env=there)
            assert ran.returncode == 1, "nobody's child, and another's"
        with ThreadPoolExecutor() as other:
            assert other.submit(refused).result().startswith(f"process {os.getpid()} (")
    assert refused() == ""


def test_a_folder_of_locks_that_cannot_be_used_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_LOCKS", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="HARNESS_LOCKS"), alone([processor()], print):
        pytest.fail("there is no such folder")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_others_put_in_the_place_of_a_lock_holds_nobody_up(tmp_path, make):
    with measuring(print):
        (file,) = tmp_path.glob("*.lock")
    file.unlink()
    make(file)
    assert refused() == "" or "cannot be opened: " in refused()
