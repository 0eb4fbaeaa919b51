"""harness.sweep over whatever has the shape of an executor."""

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from distributed import Client, LocalCluster

import harness
from harness import spec
from harness.errors import FleetError, HarnessWarning, UsageError
from harness.fleet import pools
from tests.sweeps import workload

Scale = workload("small", "Scale")


def typed():
    """Return a workload that no other process can import."""

    class Typed(harness.Workload):
        targets = ("cpu",)

        def inputs(self):
            return spec((4,))

        @staticmethod
        def function(x):
            return x + 1

    return Typed


def test_processes_measure_a_workload_typed_at_a_prompt():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        frame = harness.sweep(typed(), effort="1x1", executor=executor)
    assert set(frame[frame["workload"].str.contains("Typed")]["status"]) == {"ok"}


def test_threads_measure_one_thing_at_a_time(tmp_path):
    with ThreadPoolExecutor(4) as executor:
        frame = harness.sweep(Scale, effort="2x1", executor=executor, results=tmp_path)
        assert set(frame["status"]) == {"ok"}
        seen = []
        harness.sweep(
            Scale, effort="2x1", executor=executor, results=tmp_path, on_progress=seen.append
        )
        assert seen == []


def test_what_does_not_go_with_an_executor_or_without_one_is_refused(tmp_path):
    with ThreadPoolExecutor(1) as pool, pytest.raises(UsageError, match="set HARNESS_MACHINE"):
        harness.sweep(Scale, executor=pool, machine="mine", results=tmp_path)
    with pytest.raises(UsageError, match="give executor= as well"):
        harness.sweep(Scale, each_machine=True, results=tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_executor_that_was_shut_down_is_said(tmp_path):
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(FleetError, match="ThreadPoolExecutor is gone: RuntimeError: "):
        harness.sweep(Scale, effort="1x1", executor=executor, results=tmp_path)


def test_dask_s_clusters_and_clients_are_taken_and_anything_else_is_said():
    few = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with LocalCluster(**few, dashboard_address=":0") as cluster:
        assert "ok" in set(harness.sweep(Scale, effort="1x1", executor=cluster)["status"])
        with Client(cluster, set_as_default=False) as client:
            assert "ok" in set(harness.sweep(Scale, effort="1x1", executor=client)["status"])
        with pytest.raises(FleetError, match="The client was closed"):
            harness.sweep(Scale, effort="1x1", executor=client)
    for wrong in (cluster, 3, ThreadPoolExecutor):
        with pytest.raises(FleetError, match="Expected"):
            harness.sweep(Scale, effort="1x1", executor=wrong)


class Breaking(ThreadPoolExecutor):
    """Answers, and then raises what it was told to."""

    def submit(self, fn, text, names):
        if text != pools.CARRY_OUT:
            return super().submit(fn, text, names)
        if self.how == "at once":
            raise OSError("no route to the cluster")
        future = Future()
        future.set_exception(ValueError("not today"))
        return future


def test_an_executor_that_raises_ends_the_sweep_or_fails_the_case(tmp_path):
    with Breaking(1) as executor:
        executor.how = "at once"
        with pytest.raises(FleetError, match="Breaking is gone: OSError: no route to the cluster"):
            harness.sweep(Scale, effort="1x1", executor=executor, results=tmp_path)
        executor.how = "later"
        with pytest.warns(HarnessWarning, match=r"ValueError: not today\. It is "):
            frame = harness.sweep(Scale, effort="1x1", executor=executor, results=tmp_path)
    assert set(frame["status"]) == {"failed"}
    assert frame["reason"].str.contains("given up after 3 attempts").all()


def test_a_pool_of_processes_that_breaks_ends_the_sweep(tmp_path, monkeypatch):
    context = multiprocessing.get_context("spawn")
    monkeypatch.setattr(pools, "CARRY_OUT", "__import__('os')._exit(1)")
    with (
        ProcessPoolExecutor(1, mp_context=context) as executor,
        pytest.raises(FleetError, match="ProcessPoolExecutor is gone: "),
    ):
        harness.sweep(Scale, effort="1x1", executor=executor, results=tmp_path)
