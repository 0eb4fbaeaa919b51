"""What a sweep does about workers that are not what they should be."""

import functools
import threading
import time

import pytest

from harness.declare.location import locate
from harness.errors import FleetError, UsageError
from harness.fleet import sources
from harness.fleet import sweep as sweeping
from harness.fleet.order import Result
from harness.fleet.workers import Seat
from harness.records import environment
from harness.records.store import Store, record_files
from harness.stages import sampling
from tests.fleet.hands import Hands, done, sweep
from tests.sweeps import SUITES, workload

Scale, Several = workload("small", "Scale"), workload("small", "Several")
Printing = workload("bad", "Printing")


@functools.cache
def find(wanted):
    """Import the workloads once for all tests."""
    return sources.find(wanted)


@pytest.fixture
def at(tmp_path, monkeypatch):
    """Sweep over a pool, with results of the test's own."""
    found = find(tuple(map(locate, (Scale, Several, Printing))))
    monkeypatch.setattr("harness.fleet.place.sources.find", lambda wanted: found)
    made = []

    def run(pool, effort="1x1", workloads=(Scale,), **options):
        made.append(pool)
        return sweep(pool, list(workloads), tmp_path / "results", SUITES, effort, **options)

    yield run
    for pool in made:
        pool.threads.shutdown()


def cases(outcome):
    return [r for r in outcome.records if r.workload not in ("process", "reference")]


def sent(pool):
    """Return who was sent which process."""
    return [(worker, order.job.process) for worker, order in pool.sent]


def test_what_takes_workers_down_is_given_up_and_the_sweep_goes_on(at):
    pool = Hands({"a": {"machine": "alpha"}})

    def on_send(order, worker):
        if "Scale" in order.job.group:
            raise ValueError("it fell over")
        return Result()

    pool.on_send = on_send
    outcome, notes = at(pool, "2x1", [Scale, Printing])
    assert [order.job.process for _, order in pool.sent if "Scale" in order.job.group] == [0, 0, 0]
    assert [order.job.process for _, order in pool.sent if "Printing" in order.job.group] == [0, 1]
    assert {(r.workload, r.status) for r in cases(outcome)} == {("small.Scale", "failed")}
    assert {r.reason for r in cases(outcome)} == {
        "given up after 3 attempts; the last: alpha (a): ValueError: it fell over"
    }
    assert all(len(r.retries) == 3 for r in cases(outcome))
    ends = [note.rpartition(". It is ")[2] for note in notes]
    assert ends == ["done again.", "done again.", "given up."]


def test_a_worker_that_is_slow_to_say_what_it_is_keeps_nobody_waiting(at):
    pool = Hands({"a": {}})
    went_on = threading.Event()

    def on_ask(worker):
        if worker == "b":
            assert went_on.wait(10), "the sweep waits for its answer"

    def on_send(order, worker):
        if len(pool.sent) == 1:
            pool.come("b")
        elif len(pool.sent) == 4:
            went_on.set()
        return Result()

    pool.on_ask, pool.on_send = on_ask, on_send
    at(pool, "5x1")
    assert len(pool.sent) == 5


def test_a_worker_that_has_gone_before_its_answer_came_is_sent_nothing(at):
    pool = Hands({"a": {}})
    asked, gone = threading.Event(), threading.Event()

    def on_ask(worker):
        if worker == "b":
            asked.set()
            assert gone.wait(10)

    def on_send(order, worker):
        assert worker == "a"
        time.sleep(0.03)
        if len(pool.sent) == 1:
            pool.come("b", since="2")
            threading.Thread(target=leave).start()
        return Result()

    def leave():
        assert asked.wait(10)
        pool.come("b", since="3", lacking={"cpu": "no CPU any more"})
        gone.set()

    pool.on_ask, pool.on_send = on_ask, on_send
    at(pool, "5x1")
    assert len(pool.sent) == 5


def test_a_worker_whose_resource_stands_for_nothing_is_told_of(at):
    broken = {"lacking": {"cpu": "no CPU here"}, "machine": "beta", "host": "two"}
    _, notes = at(Hands({"a": {}, "b": broken}, done))
    assert notes == [
        "The worker beta (b) has the resource cpu, but cannot measure on it: no CPU here."
    ]
    with pytest.raises(FleetError, match=r"beta \(b\) has the resources: cpu=1; no CPU here"):
        at(Hands({"b": broken}))


def test_work_that_nobody_can_take_any_more_ends_the_sweep(at, monkeypatch):
    monkeypatch.setattr(sweeping, "HOPE_S", 0.2)
    pool = Hands({"a": {"identity": "of another"}})
    with pytest.raises(FleetError, match="Not done: 1 group of cases on cpu; for 0 s"):
        at(pool)
    assert len(pool.sent) == 1, "a worker that is not what it said is not used"


def test_a_job_waits_for_its_machine_and_then_goes_to_another(at, monkeypatch):
    monkeypatch.setattr(sweeping, "GRACE_S", 0.5)
    pool = Hands({"a": {"machine": "alpha", "host": "one"}})

    def on_send(order, worker):
        if worker == "a" and order.job.process == 1:
            del pool.seats["a"]
            pool.come("b", machine="beta", host="two")
            raise ValueError("the worker was lost")
        return Result()

    pool.on_send = on_send
    at(pool, "2x1")
    assert sent(pool) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)], "one machine has all of it"


def test_what_another_sweep_stores_meanwhile_is_not_measured_again(at):
    pool = Hands({"a": {}})

    def on_send(order, worker):
        other = Hands({"a": {}})
        at(other, "2x1")
        assert len(other.sent) == 2

    pool.on_send = on_send
    outcome, _ = at(pool, "2x1")
    assert sent(pool) == [("a", 0)]
    assert (outcome.measured, outcome.reused) == (2, 2)


def test_of_workers_that_cannot_be_chosen_one_that_was_meant_gets_it_in_the_end(at):
    pool = Hands({"a": {}})
    pool.chooses = False
    pool.seats["a"] = Seat("", None)
    elsewhere = Result(refused="it is on the machine two now, and was on one", elsewhere=True)
    pool.on_send = lambda order, worker: elsewhere if len(pool.sent) < 4 else Result()
    _, notes = at(pool)
    assert notes == []
    assert len(pool.sent) == 4
    assert "retries" not in pool.sent[-1][1].job.base


def test_thorough_adds_processes_and_says_what_stayed_wide(at, monkeypatch):
    monkeypatch.setattr(sampling, "is_narrow", lambda values: False)
    said = []
    effort = sampling.Effort("thorough", 1, 1, limit=2)
    outcome, _ = at(Hands({"a": {}}), effort, on_progress=said.append)
    assert (outcome.measured, len(outcome.wide)) == (4, 2)
    assert said[-1].done == said[-1].total == 4


def test_a_pool_that_goes_ends_the_sweep(at):
    pool = Hands({"a": {}})

    def gone():
        raise FleetError("hands is gone: goodbye")

    def on_send(order, worker):
        pool.workers = gone
        raise ValueError("cancelled")

    pool.on_send = on_send
    with pytest.raises(FleetError, match="hands is gone: goodbye"):
        at(pool)
    assert pool.stopped == [pool.sent[0][1].sweep]


def test_records_go_to_a_store_that_the_next_sweep_resumes_from(at, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeping, "HOPE_S", 0.2)
    store, pool = tmp_path / "store", Hands({"a": {"kind": "x"}})
    first, _ = at(pool, compute=False, store=str(store))
    assert (first.measured, first.records) == (2, [])
    found = [record for file in record_files(store) for record in Store(file).read()]
    assert [r.status for r in found if r.workload == "small.Scale"] == ["ok"] * 2
    assert {(r.machine, r.worker) for r in found} == {("x", environment.machine_name())}
    assert record_files(tmp_path / "results") == [] or not cases(first)
    again = Hands({"a": {"kind": "x"}})
    second, _ = at(again, compute=False, store=str(store))
    assert (second.measured, second.reused, again.sent) == (0, 2, [])
    with pytest.raises(UsageError, match="does not work with an effort that adds processes"):
        at(again, "thorough", store=str(store))
    for address, why in (("/dev/null/no", ".*Not a directory"), ("nothing://x", "Protocol not ")):
        said = f"cannot put records into the store: {address} cannot take records: {why}"
        with pytest.raises(FleetError, match=said):
            at(Hands({"a": {"kind": "x"}}), compute=False, store=address)


def test_a_store_that_fails_while_measuring_costs_one_worker_and_the_order_is_sent_again(
    at, tmp_path
):
    pool = Hands({"a": {"machine": "alpha"}, "b": {"machine": "beta"}})
    store = tmp_path / "store"

    def on_send(order, worker):
        if worker == "b":
            return Result()
        store.rmdir()
        store.write_text("in the way")
        return None

    pool.on_send = on_send
    _, notes = at(pool, store=str(store))
    assert sent(pool) == [("a", 0), ("b", 0)]
    assert "The worker alpha (a) is not used: it cannot go on: " in notes[0]
    (retry,) = pool.sent[1][1].job.base["retries"]
    assert retry.startswith(f"alpha (a): {store} cannot take records: ")


def test_what_was_finished_when_the_user_stops_it_is_stored(at, tmp_path):
    pool = Hands({"a": {}})

    def on_send(order, worker):
        if len(pool.sent) == 1:
            return None
        raise KeyboardInterrupt

    pool.seats["b"], pool.changes["b"] = Seat("1", {"cpu": 1}), {"host": "two"}
    pool.on_send = on_send
    with pytest.raises(KeyboardInterrupt):
        at(pool, workloads=[Scale, Several], compute=False)
    found = [r for file in record_files(tmp_path / "results") for r in Store(file).read()]
    assert found
    assert {r.status for r in found} == {"ok"}


def test_a_host_far_off_its_class_is_put_aside_and_its_cases_measured_on_others(at):
    pool = Hands({name: {"kind": "x", "host": name} for name in "abc"})
    all_are_there = threading.Barrier(3)
    pool.on_ask = lambda worker: all_are_there.wait(60)
    pool.on_send = lambda order, worker: Result(loop_ns=200.0 if worker == "c" else 100.0)
    several = [Scale, Several, Printing]
    outcome, notes = at(pool, "6x1", several)
    ((label, reason),) = outcome.aside.items()
    assert label.endswith("(c)")
    assert "plain loop takes 2.00 times as long as the median of 3 hosts" in reason
    assert any("is not used: it is put aside" in note for note in notes)
    by_group = {}
    for worker, order in pool.sent:
        by_group.setdefault(order.job.group, []).append((worker, order.job.process))
    for sent_for in by_group.values():
        last = sent_for[-6:]
        assert [process for _, process in last] == list(range(6)), "all of it anew"
        assert len({worker for worker, _ in last} - {"c"}) == 1


def test_a_case_waits_for_its_class_at_the_next_sweep_and_another_is_not_given_it(at, monkeypatch):
    monkeypatch.setattr(sweeping, "HOPE_S", 0.2)
    at(Hands({"a": {"kind": "x"}}, done))
    other = Hands({"b": {"kind": "y"}})
    with pytest.raises(FleetError, match=r"stay with x, which measured them before.*placement"):
        at(other)
    assert other.sent == []
    third = Hands({"b": {"kind": "y"}, "c": {"kind": "x", "host": "another"}}, done)
    at(third)
    assert {worker for worker, _ in third.sent} == {"c"}
