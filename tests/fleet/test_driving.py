"""What a sweep does about workers that are not what they should be."""

import shutil
import time

import pytest

from harness import environment
from harness.errors import FleetError
from harness.fleet import driving, spool, waiting
from harness.fleet.errand import Report
from harness.fleet.pool import Gone, Lost
from tests.fleet.hands import Hands, done, sweep
from tests.sweeps import SUITES, workload

Scale = workload("small", "Scale")
HOUR_NS = 3600 * 10**9


@pytest.fixture
def at(tmp_path, monkeypatch):
    """Sweep over a pool, with a spool and results of the test's own."""
    monkeypatch.setenv("HARNESS_SPOOL", str(tmp_path / "spool"))
    made = []

    def run(pool, effort="1x1", workloads=(Scale,), **options):
        made.append(pool)
        return sweep(pool, list(workloads), tmp_path / "results", SUITES, effort, **options)

    yield run
    for pool in made:
        pool.close()


def cases(outcome):
    return [r for r in outcome.records if r.workload not in ("process", "reference")]


def test_a_clock_that_is_an_hour_off_is_said_once_and_corrected(at):
    pool = Hands({"a": {"clock_ns": time.time_ns() + HOUR_NS, "machine": "alpha"}})
    before = time.time() * 1000
    outcome, notes = at(pool, "2x1")
    assert len(notes) == 1
    assert notes[0].startswith("The clock of the worker a is +3")
    assert "s off; the times in its records are corrected by that." in notes[0]
    # The worker's clock is not really wrong here, so what is right comes out an hour early.
    for record in cases(outcome):
        assert record.started_at_ms + 3_600_000 == pytest.approx(before, abs=60_000)
        assert record.machine == "alpha"


def test_unlike_machines_of_one_name_are_refused_with_what_differs(at):
    pool = Hands({"a": {}, "b": {"hardware": {**environment.host(), "cpu": "Another One 9000"}}})
    with pytest.raises(FleetError) as caught:
        at(pool)
    text = str(caught.value)
    assert "The workers a and b are unlike machines that are both called" in text
    assert "cpu: " in text
    assert "Another One 9000" in text
    assert "HARNESS_MACHINE" in text
    assert pool.sent == []


def test_machines_of_one_name_with_other_accelerators_are_unlike(at):
    pool = Hands(
        {
            "a": {"accelerators": "all of 0, NVIDIA H200"},
            "b": {"accelerators": "all of 0, NVIDIA A100", "host": "another"},
        }
    )
    with pytest.raises(FleetError, match="H200 and 0, NVIDIA A100"):
        at(pool)


@pytest.mark.slow
def test_an_unlike_machine_that_comes_late_is_not_used_and_the_rest_goes_on(at):
    pool = Hands({"a": {}})

    def on_send(errand, place):
        if len(pool.sent) == 1:
            pool.come("b", hardware={**environment.host(), "cores": 1000}, host="other")

    pool.on_send = on_send
    outcome, notes = at(pool, "2x1")
    assert outcome.measured == 4
    assert [note for note in notes if "has the name of another machine" in note]
    assert {worker for worker, _ in pool.sent} == {"a"}


@pytest.mark.slow
def test_what_takes_workers_down_is_given_up_and_the_sweep_goes_on(at):
    pool = Hands({"a": {}})
    scale, printing = Scale, workload("bad", "Printing")

    def on_send(errand, place):
        if "Scale" in errand.order.share:
            return Lost(errand.id, "the worker was lost")
        return None

    pool.on_send = on_send
    outcome, notes = at(pool, "2x1", [scale, printing])
    assert len([errand for _, errand in pool.sent if "Scale" in errand.order.share]) == 3
    failed = [r for r in cases(outcome) if r.workload == "small.Scale"]
    assert {r.status for r in failed} == {"failed"}
    assert {r.reason for r in failed} == {
        f"given up after 3 attempts; the last: {pool.machine()} (a): the worker was lost"
    }
    assert all(len(r.retries) == 3 for r in failed)
    assert len([r for r in cases(outcome) if r.workload == "bad.Printing"]) == 2
    assert outcome.measured == 2
    assert notes[-1].endswith("It is given up.") or any("given up" in note for note in notes)


def test_a_disk_that_fills_while_measuring_costs_one_worker_and_no_record(at, tmp_path):
    pool = Hands({"a": {"machine": "alpha"}, "b": {"machine": "beta"}})
    fill = tmp_path / "spool"

    def on_send(errand, place):
        if place.worker == "a":
            shutil.rmtree(fill / errand.owner)
            (fill / errand.owner).write_text("in the way")
        elif (fill / errand.owner).is_file():
            (fill / errand.owner).unlink()

    pool.on_send = on_send
    outcome, notes = at(pool)
    assert outcome.measured == 2
    assert [worker for worker, _ in pool.sent] == ["a", "b"]
    assert "The worker a is not used: it cannot go on: the records that wait" in notes[0]
    assert "HARNESS_SPOOL" in notes[0]
    assert all("alpha (a): the records that wait" in r.retries[0] for r in cases(outcome))


def test_a_worker_that_is_another_one_by_now_is_asked_again(at):
    pool = Hands({"a": {"identity": "what it was"}})

    def on_send(errand, place):
        if len(pool.sent) == 1:
            pool.changes["a"] = {}

    pool.on_send = on_send
    outcome, _ = at(pool)
    assert outcome.measured == 2
    assert len(pool.sent) == 2
    texts = {text for r in cases(outcome) for text in r.retries}
    assert len(texts) == 1
    assert "flags, plugins or hardware are not what they were" in texts.pop()


def test_a_worker_that_is_never_what_it_says_is_not_asked_for_ever(at, monkeypatch):
    monkeypatch.setattr(driving, "HOPE_S", 0.5)
    pool = Hands({"a": {"identity": "of another"}})
    with pytest.raises(FleetError, match=r"1 shares are not done, and for 0 s no worker"):
        at(pool)
    assert len(pool.sent) == 3


@pytest.mark.slow
def test_a_job_waits_for_its_machine_and_then_goes_to_another(at, monkeypatch):
    monkeypatch.setattr(waiting, "GRACE_S", 0.5)
    pool = Hands({"a": {"machine": "alpha", "host": "one"}})

    def on_send(errand, place):
        if place.worker == "a" and errand.order.process == 1:
            del pool.there["a"]
            pool.come("b", machine="beta", host="two")
            return Lost(errand.id, "the worker was lost")
        return None

    pool.on_send = on_send
    outcome, _ = at(pool, "2x1")
    found = {(r.machine, r.replicate[-2:]) for r in cases(outcome)}
    assert found == {("alpha", "#0"), ("beta", "#0"), ("beta", "#1")}, "one machine has all of it"
    assert {errand.order.process for worker, errand in pool.sent if worker == "b"} == {0, 1}


@pytest.mark.slow
def test_records_of_this_sweep_are_taken_over_from_the_spool_even_if_fresh(at):
    pool = Hands({"a": {}})

    def on_send(errand, place):
        if len(pool.sent) == 1:
            pool.work(errand)  # carried out, but the client does not hear of it
            pool.events.get()
            return Lost(errand.id, "the worker was lost")
        return None

    pool.on_send = on_send
    outcome, _ = at(pool, fresh=True)
    assert outcome.measured == 2
    assert {len(r.retries) for r in cases(outcome)} == {0}, "the first attempt made them"
    again, _ = at(Hands({"a": {}}), fresh=True)
    assert (again.measured, again.reused) == (2, 0)


@pytest.mark.slow
def test_what_another_sweep_stores_meanwhile_is_not_measured_again(at, tmp_path):
    pool = Hands({"a": {}})

    def on_send(errand, place):
        if errand.order.process == 0:
            other = Hands({"a": {}})
            at(other, "2x1")
            assert len(other.sent) == 2

    pool.on_send = on_send
    outcome, _ = at(pool, "2x1")
    assert [errand.order.process for _, errand in pool.sent] == [0]
    assert (outcome.measured, outcome.reused) == (2, 2)


def test_a_pool_that_goes_ends_the_sweep(at):
    pool = Hands({"a": {}})
    pool.on_send = lambda errand, place: Gone("it said goodbye")
    with pytest.raises(FleetError, match=r"hands is gone: it said goodbye\. What arrived"):
        at(pool)
    assert len(pool.stopped) == 1


def test_work_that_nobody_can_take_any_more_ends_the_sweep(at, monkeypatch):
    monkeypatch.setattr(driving, "HOPE_S", 0.5)
    pool = Hands({"a": {}})
    pool.on_send = lambda errand, place: Report(errand.id, [], refused="the disk is full")
    with pytest.raises(FleetError, match=r"1 shares are not done.*it resumes"):
        at(pool)


def test_an_errand_that_brings_nothing_is_not_repeated_for_ever(at):
    pool = Hands({"a": {}})
    pool.on_send = lambda errand, place: done(errand)
    outcome, _ = at(pool, "2x1")
    assert outcome.measured == 0
    assert len(pool.sent) == 2


def test_an_order_that_was_begun_here_before_is_not_begun_again(at, tmp_path):
    pool = Hands({"a": {}})

    def on_send(errand, place):
        if len(pool.sent) == 1:
            spool.store(errand.owner, errand.id).open()

    pool.on_send = on_send
    outcome, notes = at(pool)
    assert outcome.measured == 2
    assert len(pool.sent) == 2
    assert "the worker was lost, and has come back. It is done again." in notes[0]
