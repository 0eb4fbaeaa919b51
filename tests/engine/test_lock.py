"""Who measures on a machine waits for others who do, and a killed one holds nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from harness.engine.lock import alone, processor
from harness.errors import UsageError
from tests.sweeps import sweep, workload

Scale = workload("small", "Scale")

HOLDS = """
import time
from harness.engine.lock import alone, processor
with alone([processor()], print):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path, monkeypatch):
    """A process that holds this machine."""
    monkeypatch.setenv("HARNESS_LOCKS", str(tmp_path))
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
        told.append(message)
        if message.warning:
            holder.send_signal(signal.SIGKILL)

    outcome = sweep([Scale], tmp_path / "results", on_progress=on_progress)
    warnings = [one.warning for one in told if one.warning]
    assert len(warnings) == 1
    assert f"waits: process {holder.pid} (" in warnings[0]
    assert warnings[0] == told[0].warning, "nothing is measured before"
    assert outcome.measured == 2

    again = sweep([Scale], tmp_path / "results", wait=False)
    assert (again.measured, again.reused) == (0, 2)


def test_what_is_measured_already_waits_for_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_LOCKS", str(tmp_path))
    sweep([Scale], tmp_path / "results")
    with alone([processor()], print):
        assert sweep([Scale], tmp_path / "results", wait=False).reused == 2


def test_two_who_wait_measure_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_LOCKS", str(tmp_path))
    inside, most = [], []

    def hold():
        with alone([processor()], lambda holder: None):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.05)
            inside.pop()

    threads = [threading.Thread(target=hold) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert most == [1] * 8


def test_a_folder_of_locks_that_cannot_be_used_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_LOCKS", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="HARNESS_LOCKS"), alone([processor()], print):
        pytest.fail("there is no such folder")
