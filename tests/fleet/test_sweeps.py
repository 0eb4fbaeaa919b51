"""Sweeps over workers that do what they should."""

import json
import os
import time

import msgspec
import pytest
from distributed import Client

import harness
from harness.errors import FleetError
from harness.fleet.place import Question
from harness.fleet.pools import DaskPool
from harness.stages.registry import CASE_STAGES
from tests.fleet.processes import measuring
from tests.fleet.test_executors import typed
from tests.repositories import git
from tests.targets.test_compile_only import needs


@pytest.fixture(scope="module", autouse=True)
def workers(fleet):
    """Two machines, as far as anybody can tell; they share this one's CPU."""
    fleet.worker("alpha")
    fleet.worker("beta")
    fleet.wait_for("alpha", "beta")


@pytest.fixture(scope="module")
def once(fleet):
    scale, several = fleet.workload("small", "Scale"), fleet.workload("small", "Several")
    return fleet.sweep([scale, several], "1x1", seed=3)


def cases(outcome):
    return [r for r in outcome.records if r.workload not in ("process", "reference")]


def test_records_say_which_machine_and_environment_took_them(fleet, once):
    outcome, notes, messages = once
    assert notes == []
    assert outcome.measured == 5
    assert {r.machine for r in outcome.records} == {"alpha", "beta"}
    for record in cases(outcome):
        assert record.status == "ok"
        assert list(record.stages) == list(CASE_STAGES)
        assert record.seed == 3
        assert record.retries == []
        assert len(json.loads(bytes(record.environment))["host"]["cpu"]) > 3
    assert {m.machine for m in messages} == {"alpha", "beta"}
    assert [m.done for m in messages] == [1, 2, 3, 4, 5]
    assert {m.total for m in messages} == {5}
    assert len(fleet.records()) == 5


def test_what_dask_s_nanny_sets_reaches_no_measurement(fleet):
    under_a_nanny = fleet.worker("gamma", nanny=True)
    fleet.wait_for("alpha", "beta", "gamma")
    names = {"OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_", "PYTHONHASHSEED"} - os.environ.keys()
    assert names
    with Client(fleet.address, set_as_default=False) as client:
        pool = DaskPool(client, only=["gamma"])
        (address,) = pool.workers()

        def variables():
            return client.run(lambda: dict(os.environ), workers=[address])[address].keys()

        assert variables() >= names
        pool.ask(address, msgspec.msgpack.encode(Question(sources=[]))).result(60)
        assert names.isdisjoint(variables())
    fleet.stop(under_a_nanny)


def test_measurements_of_two_workers_on_one_cpu_never_overlap(fleet, once):
    outcome, _, _ = once
    for record in cases(outcome):
        taken = sum(sum(s.samples_ns) * s.number for s in record.stages.values()) / 1e6
        for other in cases(outcome):
            if other.machine != record.machine:
                assert not record.started_at_ms < other.started_at_ms < record.started_at_ms + taken


def test_a_second_run_measures_what_is_missing_where_the_first_began(fleet, once):
    scale, several = fleet.workload("small", "Scale"), fleet.workload("small", "Several")
    outcome, _, _ = fleet.sweep([scale, several], "2x1")
    assert (outcome.measured, outcome.reused) == (5, 5)
    machines = {}
    for record in cases(outcome):
        machines.setdefault(record.key, set()).add(record.machine)
    assert all(len(found) == 1 for found in machines.values())
    git(
        fleet.project, "add", "results"
    )  # that they are tracked changes nothing of what is measured
    outcome, _, _ = fleet.sweep([scale, several], "2x1")
    assert (outcome.measured, outcome.reused) == (0, 10)


def test_each_machine_can_measure_everything_and_the_command_line_says_where(fleet):
    arguments = ("small.Scale", "--effort", "1x1", "--each-machine", "--night", "each")
    code, out, err = fleet.run(*arguments)
    assert code == 0, err
    assert "2 machines: alpha, beta" in out
    assert "Records: results/alpha/records/" in out
    assert "Records: results/beta/records/" in out
    assert "alpha · small.Scale" in err or "beta · small.Scale" in err
    assert "distributed" not in err
    assert "Traceback" not in err
    found = sorted((r.machine, r.axes["size"]) for r in fleet.records() if r.night == "each")
    assert found == [("alpha", 8), ("alpha", 16), ("beta", 8), ("beta", 16)]


def test_dask_s_own_executor_chooses_workers(fleet, tmp_path):
    with Client(fleet.address, set_as_default=False) as client:
        executor = client.get_executor(workers=["beta"])
        frame = harness.sweep(typed(), effort="1x1", executor=executor, results=tmp_path)
        assert set(frame["machine"]) == {"beta"}
        assert set(frame["status"]) == {"ok"}
        executor.shutdown()
        with pytest.raises(FleetError, match="was shut down"):
            harness.sweep(typed(), effort="1x1", executor=executor, results=tmp_path)
        assert client.status == "running"


@needs("tpu:v5e")
@pytest.mark.nightly
def test_a_cpu_and_a_target_compiled_for_on_it_are_never_measured_at_the_same_time(fleet):
    fleet.worker("tpus", "tpu:v5e=1", HARNESS_CLASS="alpha")
    fleet.wait_for("alpha", "beta", "tpus")
    sweep = fleet.start(
        [fleet.workload("small", "Scale")],
        "1x1",
        targets=("cpu", "tpu:v5e"),
        only=("alpha", "tpus"),
        night="unlike",
    )
    most = 0
    while not sweep.done():
        most = max(most, len(measuring(fleet)))
        time.sleep(0.1)  # looking takes as much of this machine as measuring does
    assert most == 1
    outcome, _, _ = sweep.result()
    assert outcome.measured == 4
    assert {(r.target, r.status) for r in cases(outcome)} == {("cpu", "ok"), ("tpu:v5e", "ok")}
    assert {r.machine for r in outcome.records} == {"alpha"}
