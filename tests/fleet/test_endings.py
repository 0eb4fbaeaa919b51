"""Clients, schedulers and workers that end in the middle: nothing finished is lost."""

import os
import signal

import psutil
import pytest

from harness.fleet.dask_pool import DaskPool
from harness.fleet.pool import Changed
from harness.records.store import record_files
from tests.fleet.processes import measuring, wait_until
from tests.performance.fleet_processes import free_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def alpha(fleet):
    worker = fleet.worker("alpha", "cpu=1", "--worker-port", "0")
    fleet.wait_for("alpha")
    return worker


def lines(fleet):
    """Return how many times each case of each process was stored."""
    from harness.records.schema import Problems, read_file

    counts = {}
    problems = Problems()
    for file in record_files(fleet.results):
        for record in read_file(file, problems):
            if record.workload not in ("process", "reference"):
                name = record.key, record.replicate
                counts[name] = counts.get(name, 0) + 1
    assert not problems
    return counts


def test_a_client_that_is_killed_loses_nothing_and_nothing_is_measured_twice(fleet, alpha):
    client = fleet.client("Slow", "--effort", "1x1")
    wait_until(fleet.records, what="a record")
    fleet.kill(client)
    stored = len(fleet.records())
    wait_until(lambda: not measuring(fleet.spool), what="the end of the order")
    code, out, err = fleet.run("Slow", "--effort", "1x1")
    assert code == 0, err
    if stored < 3:  # on a busy machine it may have been killed after the last one
        assert "record(s) of an earlier sweep were waiting on its workers" in err
    assert "0 measured, 3 measured before and reused" in out
    assert list(lines(fleet).values()) == [1, 1, 1]
    assert list(fleet.spool.rglob("*.jsonl")) == []


def test_ctrl_c_ends_what_is_measured_and_keeps_what_is_finished(fleet, alpha):
    before = len(fleet.records())
    client = fleet.client("Slow", "--effort", "5x1")
    wait_until(lambda: len(fleet.records()) > before, what="a record")
    os.killpg(client.pid, signal.SIGINT)
    _, err = client.communicate(timeout=20)
    assert client.returncode == 130
    wait_until(lambda: not measuring(fleet.spool), 2, "the end of measuring")
    assert "interrupted. Every finished record is kept" in err
    assert "Traceback" not in err
    assert "distributed" not in err
    code, _, err = fleet.run("Slow", "--effort", "2x1")
    assert code == 0, err
    assert set(lines(fleet).values()) == {1}
    assert len(fleet.records()) == 6


def test_a_scheduler_that_dies_ends_the_sweep_at_once_and_the_next_one_resumes(fleet, alpha):
    before = len(fleet.records())
    client = fleet.client("Slow", "--effort", "4x1")
    wait_until(lambda: len(fleet.records()) > before, what="a record")
    fleet.kill(fleet.scheduler)
    _, err = client.communicate(timeout=15)
    assert client.returncode == 5
    assert "is gone: the connection to it was lost. What arrived is stored" in err
    assert "Traceback" not in err
    alpha.wait(30)
    fleet.start_scheduler()
    fleet.worker("alpha")
    fleet.wait_for("alpha")
    code, _, err = fleet.run("Slow", "--effort", "4x1")
    assert code == 0, err
    assert set(lines(fleet).values()) == {1}
    assert len(fleet.records()) == 12


def test_a_worker_that_is_killed_has_its_unit_done_again_and_the_record_says_so(fleet):
    beta = fleet.worker("beta", nanny=True)
    fleet.wait_for("alpha", "beta")
    client = fleet.client("Slow", "small.Scale", "--effort", "1x1", "--night", "kill")
    victim = wait_until(lambda: measuring(fleet.spool), what="measuring")[0]
    worker = psutil.Process(victim).parent()
    machine = worker.environ()["HARNESS_MACHINE"]
    worker.kill()
    out, err = client.communicate(timeout=90)
    assert client.returncode == 0, err
    assert "the worker was lost. It is done again." in err
    assert "had to be begun more than once" in out
    found = [r for r in fleet.records() if r.night]
    assert len(found) == 5
    retried = [r for r in found if r.retries]
    assert retried
    assert all(r.retries[0].startswith(f"{machine} (tcp://") for r in retried)
    fleet.kill(beta)


def test_a_worker_that_comes_back_under_its_address_does_not_hide_that_it_was_lost(fleet):
    options = ("gamma", "gamma=1,cpu=1", "--worker-port", str(free_port()))
    gamma = fleet.worker(*options)
    wait_until(lambda: "Registered to" in fleet.log("worker-gamma"))
    from distributed import Client

    with Client(fleet.address, set_as_default=False) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        others = [a for a, info in workers.items() if info["name"] != "gamma"]
        client.retire_workers(others)
    client = fleet.client("Slow", "--effort", "1x1", "--night", "back")
    wait_until(lambda: measuring(fleet.spool), what="measuring")
    fleet.kill(gamma)
    fleet.worker(*options)
    _, err = client.communicate(timeout=90)
    assert client.returncode == 0, err
    found = [r for r in fleet.records() if r.night == "back"]
    assert len(found) == 3
    assert any("the worker was lost" in text for r in found for text in r.retries)


def test_a_worker_that_goes_before_anybody_has_looked_is_missed(fleet):
    from distributed import Client

    with Client(fleet.address, set_as_default=False) as client:
        pool = DaskPool(client=client, only=["delta"])
        delta = fleet.worker("delta")
        wait_until(pool.workers, what="delta")
        fleet.kill(delta)
        wait_until(lambda: not pool._workers(), what="its end")
        assert pool.next_events(0) == [Changed()]
        assert pool.workers() == {}
        pool._looked = float("-inf")
        assert pool.next_events(0) == []


def test_two_clients_of_one_tree_measure_everything_once_and_tear_nothing(fleet):
    clients = [
        fleet.client("Slow", "small.Scale", "--effort", "2x1", "--night", "two") for _ in range(2)
    ]
    outs = [client.communicate(timeout=120) for client in clients]
    assert [client.returncode for client in clients] == [0, 0], outs
    found = [r for r in fleet.records() if r.night == "two"]
    assert len(found) == 10
    assert {r.status for r in found} == {"ok"}
    counts = lines(fleet)
    assert sum(counts[r.key, r.replicate] for r in found) <= 12, "nearly all was taken over"
