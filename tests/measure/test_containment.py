"""What the kernel sees to: a process that is stuck ends with its command, and memory has an end."""

import subprocess
import sys

import psutil
import pytest

from harness.measure import containment
from tests.measure.test_child import wait_for
from tests.started import TOKEN, of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux sees to it")

STUCK = """
import ctypes, pathlib
from harness import Workload, spec


class Stuck(Workload):
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        pathlib.Path("begun").touch()
        ctypes.PyDLL(None).sleep(600)  # in C, and no thread of Python's runs meanwhile
        return x
"""
SWEEP = "import harness, stuck; harness.sweep(stuck.Stuck, effort='1x1')"


@pytest.mark.usefixtures("fresh_processes")
def test_a_process_that_is_stuck_in_c_ends_with_a_command_that_is_killed(tmp_path, monkeypatch):
    (tmp_path / "stuck.py").write_text(STUCK)
    monkeypatch.setenv(TOKEN, str(tmp_path))
    running = subprocess.Popen([sys.executable, "-c", SWEEP], cwd=tmp_path)
    assert wait_for((tmp_path / "begun").exists, 120)
    running.kill()
    running.wait()
    assert wait_for(lambda: alive(tmp_path) == [])


def alive(token):
    return [one for one in of(str(token)) if one.status() != psutil.STATUS_ZOMBIE]


LIMITED = """
import sys
from harness.measure import containment
print(containment.contain(256 << 20))
held = []
try:
    while True:
        held.append(bytearray(1 << 20))
except MemoryError:
    print(len(held))
"""


def test_a_process_gets_no_more_memory_than_it_may_hold_and_what_threads_may_need():
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True)
    bound, mib = done.stdout.splitlines()
    assert bound == "['ends with its parent', 'memory']"
    most = 256 + (containment._THREADS_BYTES >> 20) * (psutil.cpu_count() or 1)
    assert 200 < int(mib) <= most + 64


def test_the_limit_of_a_group_is_the_least_of_those_above(tmp_path, monkeypatch):
    inner = tmp_path / "job" / "step"
    inner.mkdir(parents=True)
    (tmp_path / "job" / "memory.max").write_text("1000\n")
    (inner / "memory.max").write_text("max\n")
    (tmp_path / "cgroup").write_text("0::/job/step\n")
    monkeypatch.setattr(containment, "_GROUPS", tmp_path)
    monkeypatch.setattr(containment, "_OWN_GROUPS", tmp_path / "cgroup")
    assert containment.group_limit_bytes() == 1000
    (tmp_path / "job" / "memory.max").unlink()
    assert containment.group_limit_bytes() is None
