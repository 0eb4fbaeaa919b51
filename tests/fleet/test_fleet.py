"""Sweeps on a real scheduler and real workers, which pass for two machines."""

import io
import signal
import time
import zipfile
from pathlib import Path

import msgspec
import pytest

import harness
from harness.errors import ExitCode, HarnessError
from harness.fleet import client as fleet_client
from harness.fleet.worker import Answer, answer
from harness.records import environment
from harness.workload.location import Source
from tools.fleet_processes import fleet, measured, times

SMALL = """
from harness import Workload, spec

class One(Workload):
    sweep = {"size": [8, 9]}
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return x + 1

class Two(One):
    @staticmethod
    def function(x):
        if x.shape == (9,):
            raise ValueError("not of nine")
        return x + 2
"""

SLOW = """
import time
from harness import Workload, spec

class Slow(Workload):
    sweep = {"size": [8, 9]}
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        time.sleep(0.5)
        return x + 1
"""


@pytest.fixture(scope="module")
def on(tmp_path_factory):
    with fleet(tmp_path_factory.mktemp("fleet"), {"small": SMALL, "slow": SLOW}) as running:
        yield running


@pytest.fixture
def ready(on):
    """The fleet with all that belongs to it."""
    on.start()
    on.wait()
    return on


def until(true, seconds=60.0):
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_each_process_measures_each_case_once_and_a_failure_is_a_record(ready, tmp_path):
    run = ready.run("One", "Two", "--effort", "2x1", "--results", str(tmp_path))
    assert run.wait(300) == ExitCode.SOME_FAILED, ready.log()
    assert list(times(tmp_path).values()) == [1] * 6
    records = measured(tmp_path)
    assert {(r.workload, r.axes["size"], r.status) for r in records} == {
        ("small.One", 8, "ok"),
        ("small.One", 9, "ok"),
        ("small.Two", 8, "ok"),
        ("small.Two", 9, "failed"),
    }
    assert {(r.machine, r.worker) for r in records} == {("alpha", "alpha"), ("beta", "beta")}
    of_workload = {
        name: {r.machine for r in records if r.workload == name}
        for name in ("small.One", "small.Two")
    }
    assert [len(machines) for machines in of_workload.values()] == [1, 1]
    code = next(r.code for r in records if r.status == "ok")
    assert "./benchmarks/small.py" in code

    again = ready.run("One", "--effort", "3x1", "--results", str(tmp_path))
    assert again.wait(300) == ExitCode.FINE, ready.log()
    assert "2 measured, 4 measured before and reused" in ready.log()
    assert list(times(tmp_path).values()) == [1] * 8


@pytest.mark.nightly
def test_what_a_killed_worker_measured_is_measured_again(ready, tmp_path):
    run = ready.run("Slow", "--effort", "2x1", "--results", str(tmp_path))
    until(ready.measuring)
    for machine in ready.machines:
        ready.process(machine).kill()
    until(lambda: ready.running["beta"].poll() is not None)
    ready.start()
    assert run.wait(300) == ExitCode.FINE, ready.log()
    assert "was lost" in ready.log()
    assert list(times(tmp_path).values()) == [1] * 4


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("victim", "code"),
    [
        ("client", ExitCode.INTERRUPTED),
        pytest.param("scheduler", ExitCode.UNUSABLE, marks=pytest.mark.nightly),
    ],
)
def test_nothing_goes_on_measuring_and_the_command_resumes(ready, tmp_path, victim, code):
    run = ready.run("Slow", "--effort", "2x1", "--results", str(tmp_path))
    until(lambda: measured(tmp_path))
    until(ready.measuring)
    before = measured(tmp_path)
    if victim == "client":
        run.send_signal(signal.SIGINT)
    else:
        ready.process("scheduler").kill()
    assert run.wait(60) == code, ready.log()
    until(lambda: not ready.measuring(), 10)
    assert len([line for line in ready.log().splitlines() if "resumes" in line]) == 1
    ready.start()
    ready.wait()
    again = ready.run("Slow", "--effort", "2x1", "--results", str(tmp_path))
    assert again.wait(300) == ExitCode.FINE, ready.log()
    assert list(times(tmp_path).values()) == [1] * 4
    assert measured(tmp_path)[: len(before)] == before


def test_a_command_that_nobody_can_carry_out_ends_and_says_why(ready, tmp_path):
    run = ready.run("--target", "gpu", "--wait", "1", "--results", str(tmp_path))
    assert run.wait(60) == ExitCode.UNUSABLE
    reasons = [line for line in ready.log().splitlines() if "has no gpu" in line]
    assert len(reasons) >= len(ready.machines)
    assert not measured(tmp_path)


def test_no_scheduler_is_one_error(monkeypatch):
    monkeypatch.setattr(fleet_client, "CONNECT_S", 1.0)
    with pytest.raises(HarnessError, match="No Dask scheduler answers at tcp"):
        fleet_client.sweep("tcp://127.0.0.1:1")


def test_a_worker_of_another_release_is_refused():

    usual = {"harness": harness.__version__, "jax": environment.versions()["jax"]}
    place = msgspec.msgpack.decode(answer(usual), type=Answer)
    assert not place.refused
    assert place.place[1:] == (environment.env_name(), environment.identity())
    other = msgspec.msgpack.decode(answer({**usual, "jax": "0.4.1"}), type=Answer)
    assert other.refused == f"has jax {usual['jax']}, and the client 0.4.1"


def test_what_is_sent_is_the_package_without_what_is_hidden(tmp_path, monkeypatch):

    package = tmp_path / "sent_suite"
    for name in ("one.py", "data.txt", ".hidden", "__pycache__/one.pyc"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("")
    (tmp_path / "weights").write_text("")
    (package / "one.py").write_text(
        "from harness import Workload\nclass W(Workload):\n    depends_on = ('weights',)\n"
    )
    source = Source("sent_suite.one", "W", str(package / "one.py"))
    sent, archive = fleet_client.packed(source)
    assert Path(sent.file) == Path("sent_suite/one.py")
    names = zipfile.ZipFile(io.BytesIO(archive)).namelist()
    assert sorted(names) == ["sent_suite/data.txt", "sent_suite/one.py", "weights"]
    monkeypatch.setattr(fleet_client, "MOST_BYTES", 10)
    with pytest.raises(HarnessError, match="compressed; at most 0 MiB can be sent"):
        fleet_client.packed(source)
