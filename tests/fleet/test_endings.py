"""Clients, schedulers and workers that end in the middle: nothing finished is lost."""

import os
import signal
import time
from collections import Counter

import pytest

from harness.errors import FleetError
from harness.records.schema import Problems, read_file
from harness.records.store import record_files
from tests.fleet.processes import measuring, wait_until
from tools.performance.fleet_processes import free_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def slow(fleet):
    """A workload that takes a while; and one worker, alpha."""
    fleet.worker("alpha")
    fleet.wait_for("alpha")
    return [fleet.workload("slow", "Slow")]


def lines(fleet):
    """Return how many processes each case of each process number has records of."""
    problems = Problems()
    found = [r for file in record_files(fleet.results) for r in read_file(file, problems)]
    assert not problems
    cases = [r for r in found if r.workload not in ("process", "reference")]
    return Counter(name[:2] for name in {(r.key, r.replicate, r.process) for r in cases})


@pytest.mark.nightly
def test_a_client_that_is_killed_loses_only_what_was_being_measured(fleet, slow):
    client = fleet.client("Slow", "--effort", "2x1")
    wait_until(fleet.records, what="a record")
    fleet.kill(client)
    before = len(fleet.records())
    wait_until(lambda: not measuring(fleet), what="the end of the order")
    outcome, _, _ = fleet.sweep(slow, "2x1")
    assert (outcome.measured, outcome.reused) == (6 - before, before)
    assert set(lines(fleet).values()) == {1}


def test_ctrl_c_ends_what_is_measured_and_keeps_what_is_finished(fleet, slow):
    before = len(fleet.records())
    client = fleet.client("Slow", "--effort", "4x1")
    wait_until(lambda: len(fleet.records()) > before, what="a record")
    wait_until(lambda: measuring(fleet), what="the next order")
    os.killpg(client.pid, signal.SIGINT)
    _, err = client.communicate(timeout=20)
    assert client.returncode == 130
    wait_until(lambda: not measuring(fleet), 2, "the end of measuring")
    assert "interrupted. Every finished record is kept" in err
    assert "Traceback" not in err
    assert "distributed" not in err
    kept = len(fleet.records())
    assert kept > before
    outcome, _, _ = fleet.sweep(slow, "2x1")
    assert outcome.measured + outcome.reused == 6
    assert set(lines(fleet).values()) == {1}
    assert len(fleet.records()) == kept + outcome.measured


def test_a_scheduler_that_dies_ends_the_sweep_at_once_and_the_next_one_resumes(fleet, slow):
    before = len(fleet.records())
    sweep = fleet.start(slow, "6x1")
    wait_until(lambda: len(fleet.records()) > before, what="a record")
    fleet.kill(fleet.scheduler)
    with pytest.raises(FleetError, match=r"is gone: .*What arrived is stored"):
        sweep.result(60)  # Dask tries for 30 s to connect again
    wait_until(lambda: not measuring(fleet), what="the end of the order")
    fleet.start_scheduler()
    fleet.worker("alpha")
    fleet.wait_for("alpha")
    outcome, _, _ = fleet.sweep(slow, "4x1")
    assert outcome.measured + outcome.reused == 12
    assert set(lines(fleet).values()) == {1}


def test_a_worker_that_is_killed_has_its_order_done_again_by_the_next_under_its_address(
    fleet, slow
):
    options = ("gamma", "cpu=1", "--worker-port", str(free_port()))
    gamma = fleet.worker(*options)
    fleet.wait_for("alpha", "gamma")
    sweep = fleet.start(slow, "1x1", night="back", only=("gamma",))
    wait_until(lambda: measuring(fleet), what="measuring")
    fleet.kill(gamma)
    fleet.worker(*options)
    outcome, notes, _ = sweep.result(60)
    assert notes[0].endswith("the worker was lost. It is done again.")
    assert outcome.measured == 3
    assert outcome.retried
    for record in outcome.retried:
        assert record.retries[0].startswith("gamma (tcp://")
        assert record.retries[0].endswith("the worker was lost")


@pytest.mark.nightly
def test_two_clients_of_one_tree_tear_nothing_and_measure_nothing_at_once(fleet, slow):
    slow = [*slow, fleet.workload("small", "Scale")]
    sweeps = [fleet.start(slow, "1x1", night="two", only=("alpha",)) for _ in range(2)]
    most = 0
    while not all(sweep.done() for sweep in sweeps):
        most = max(most, len(measuring(fleet)))
        time.sleep(0.1)  # looking takes as much of this machine as measuring does
    assert most == 1
    assert [sweep.result()[0].measured + sweep.result()[0].reused for sweep in sweeps] == [5, 5]
    found = [r for r in fleet.records() if r.night == "two"]
    assert len(found) == 5
    assert {r.status for r in found} == {"ok"}
    assert lines(fleet)  # whole ones
