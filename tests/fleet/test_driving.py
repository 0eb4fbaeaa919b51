"""What a sweep does about workers that are not what they should be."""

import platform
import shutil
import threading
import time

import pytest

from harness.errors import FleetError
from harness.fleet import queue as task_queue
from harness.fleet import spool
from harness.fleet import sweep as sweeping
from harness.fleet.messages import RecordLine, Result
from harness.fleet.pool import Changed, Gone, Lost
from harness.records.schema import Record, encode, to_raw
from harness.records.store import Store, record_files
from harness.targets.host import host
from tests.fleet.hands import Hands, done, sweep
from tests.fleet.processes import wait_until
from tests.sweeps import SUITES, workload
from tests.sweeps import sweep as sweep_here

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
    assert notes[0].startswith("The clock of the worker alpha (a) is +3")
    assert "s off; the times in its records are corrected by that." in notes[0]
    # The worker's clock is not really wrong here, so what is right comes out an hour early.
    for record in cases(outcome):
        assert record.started_at_ms + 3_600_000 == pytest.approx(before, abs=60_000)
        assert record.machine == "alpha"


def test_what_a_worker_with_a_wrong_clock_has_kept_is_corrected_as_well(at, tmp_path):
    owner = spool.owner_of(tmp_path / "results", platform.node())
    old = sweep_here([Scale], tmp_path / "first", "1x1", targets=("cpu",)).records
    spool.store(owner, "old").append(old)
    pool = Hands({"a": {"clock_ns": time.time_ns() + HOUR_NS, "machine": "alpha"}})
    pool.on_send = lambda assignment, place: done(assignment)
    at(pool)
    stored = {
        (r.key, r.replicate): r
        for file in record_files(tmp_path / "results")
        for r in Store(file).read()
    }
    for record in old:
        found = stored[record.key, record.replicate]
        assert record.started_at_ms - found.started_at_ms == pytest.approx(3_600_000, abs=60_000)


def test_unlike_machines_of_one_name_are_refused_with_what_differs(at):
    pool = Hands({"a": {}, "b": {"hardware": {**host(), "cpu": "Another One 9000"}}})
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
            "a": {"accelerators": "NVIDIA H200"},
            "b": {"accelerators": "NVIDIA A100", "host": "another"},
        }
    )
    with pytest.raises(FleetError, match="NVIDIA H200 and NVIDIA A100"):
        at(pool)


@pytest.mark.slow
def test_an_unlike_machine_that_comes_late_is_not_used_and_the_rest_goes_on(at):
    pool = Hands({"a": {}})

    def on_send(assignment, place):
        if len(pool.sent) == 1:
            pool.come("b", hardware={**host(), "cores": 1000}, host="other")

    pool.on_send = on_send
    # Six processes: the newcomer answers while they measure.
    outcome, notes = at(pool, "6x1")
    assert outcome.measured == 12
    assert [note for note in notes if "has the name of another machine" in note]
    assert {worker for worker, _ in pool.sent} == {"a"}


@pytest.mark.slow
def test_what_takes_workers_down_is_given_up_and_the_sweep_goes_on(at):
    pool = Hands({"a": {}})
    scale, printing = Scale, workload("bad", "Printing")

    def on_send(assignment, place):
        if "Scale" in assignment.job.group:
            return Lost(assignment.id, "the worker was lost")
        return None

    pool.on_send = on_send
    outcome, notes = at(pool, "2x1", [scale, printing])
    assert len([assignment for _, assignment in pool.sent if "Scale" in assignment.job.group]) == 3
    failed = [r for r in cases(outcome) if r.workload == "small.Scale"]
    assert {r.status for r in failed} == {"failed"}
    assert {r.reason for r in failed} == {
        f"given up after 3 attempts; the last: {pool.machine()} (a): the worker was lost"
    }
    assert all(len(r.retries) == 3 for r in failed)
    assert len([r for r in cases(outcome) if r.workload == "bad.Printing"]) == 2
    assert outcome.measured == 2
    assert notes[-1].endswith("It is given up.") or any("given up" in note for note in notes)


def finished(assignment, ref):
    """Return a case of an assignment as a worker tells of it at once."""
    case = assignment.job.cases[ref.index]
    record = Record(
        **assignment.job.base,
        key=ref.key,
        axes=dict(case.axes),
        transform=case.transform,
        status="ok",
        started_at_ms=1,
        environment=to_raw({}),
    )
    return RecordLine(assignment.id, encode(record), ref.index)


def test_cases_beside_one_that_takes_workers_down_have_all_their_processes(at):
    pool = Hands({"a": {}})

    def on_send(assignment, place):
        if assignment.job.process == 0:
            if len(assignment.job.cases) == 2:
                pool.events.put(finished(assignment, assignment.job.cases[0]))
            return Lost(assignment.id, "the worker was lost")
        return Result(assignment.id, [finished(assignment, ref) for ref in assignment.job.cases])

    pool.on_send = on_send
    outcome, _ = at(pool, "3x1")
    found = sorted((r.axes["size"], r.replicate[-2:], r.status) for r in cases(outcome))
    assert found == [
        (8, "#0", "ok"),
        (8, "#1", "ok"),
        (8, "#2", "ok"),
        (16, "#0", "failed"),
    ]


def test_a_worker_that_is_slow_to_say_what_it_is_keeps_nobody_waiting(at):
    class Slow(Hands):
        def survey(self, question, workers):
            if "b" in workers:
                assert going_on.wait(10), "the sweep waits for its answer"
            return super().survey(question, workers)

    going_on = threading.Event()
    pool = Slow({"a": {}})

    def on_send(assignment, place):
        if len(pool.sent) == 1:
            pool.come("b")
        elif len(pool.sent) == 2:
            going_on.set()
        return done(assignment)

    pool.on_send = on_send
    at(pool, "3x1")
    assert len(pool.sent) == 3


def test_a_worker_that_has_gone_before_its_answer_came_is_sent_nothing(at):
    class Slow(Hands):
        def survey(self, question, workers):
            answers = super().survey(question, workers)
            if "b" in workers:
                assert gone.wait(10)
            return answers

    gone = threading.Event()
    pool = Slow({"a": {}})

    def on_send(assignment, place):
        assert place.worker == "a"
        if len(pool.sent) == 1:
            pool.come("b")
        elif len(pool.sent) == 2:
            del pool.there["b"]
            pool.events.put(Changed())
        elif len(pool.sent) == 3:
            gone.set()
            wait_until(lambda: threading.active_count() == threads, what="the answer")
        return done(assignment)

    pool.on_send = on_send
    threads = threading.active_count()
    at(pool, "5x1")
    assert len(pool.sent) == 5


def test_of_a_pool_that_cannot_say_who_is_there_the_other_workers_go_on(at, monkeypatch):
    monkeypatch.setattr(sweeping, "HOPE_S", 0.5)

    class Silent(Hands):
        by_resources = False

        def workers(self):
            return {}

        def survey(self, question, workers):
            return super().survey(question, list(self.there))

    pool = Silent({"a": {"identity": "what it was"}, "b": {"machine": "beta", "host": "two"}})
    outcome, notes = at(pool)
    assert [worker for worker, _ in pool.sent] == ["a", "b"]
    assert {r.machine for r in cases(outcome)} == {"beta"}
    assert [note for note in notes if "is not what it says: its flags, plugins" in note]


def test_a_worker_whose_resource_stands_for_nothing_is_told_of(at):
    broken = {"lacking": {"cpu": "no CPU here"}, "machine": "beta", "host": "two"}
    pool = Hands({"a": {}, "b": broken})
    pool.on_send = lambda assignment, place: done(assignment)
    _, notes = at(pool)
    assert notes == [
        "The worker beta (b) has the resource cpu, but cannot measure on it: no CPU here."
    ]


def test_a_disk_that_fills_while_measuring_costs_one_worker_and_no_record(at, tmp_path):
    pool = Hands({"a": {"machine": "alpha"}, "b": {"machine": "beta"}})
    fill = tmp_path / "spool"

    def on_send(assignment, place):
        if place.worker == "a":
            shutil.rmtree(fill / assignment.owner)
            (fill / assignment.owner).write_text("in the way")
        elif (fill / assignment.owner).is_file():
            (fill / assignment.owner).unlink()

    pool.on_send = on_send
    outcome, notes = at(pool)
    assert outcome.measured == 2
    assert [worker for worker, _ in pool.sent] == ["a", "b"]
    assert "The worker alpha (a) is not used: it cannot go on: the records that wait" in notes[0]
    assert "HARNESS_SPOOL" in notes[0]
    assert all("alpha (a): the records that wait" in r.retries[0] for r in cases(outcome))


def test_a_worker_that_is_another_one_by_now_is_asked_again(at):
    pool = Hands({"a": {"identity": "what it was"}})

    def on_send(assignment, place):
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
    monkeypatch.setattr(sweeping, "HOPE_S", 0.5)
    pool = Hands({"a": {"identity": "of another"}})
    with pytest.raises(FleetError, match=r"1 group\(s\) of cases on cpu are not done, and for 0 s"):
        at(pool)
    assert len(pool.sent) == 3


@pytest.mark.slow
def test_a_job_waits_for_its_machine_and_then_goes_to_another(at, monkeypatch):
    monkeypatch.setattr(task_queue, "GRACE_S", 0.5)
    pool = Hands({"a": {"machine": "alpha", "host": "one"}})

    def on_send(assignment, place):
        if place.worker == "a" and assignment.job.process == 1:
            del pool.there["a"]
            pool.come("b", machine="beta", host="two")
            return Lost(assignment.id, "the worker was lost")
        return None

    pool.on_send = on_send
    outcome, _ = at(pool, "2x1")
    found = {(r.machine, r.replicate[-2:]) for r in cases(outcome)}
    assert found == {("alpha", "#0"), ("beta", "#0"), ("beta", "#1")}, "one machine has all of it"
    assert {assignment.job.process for worker, assignment in pool.sent if worker == "b"} == {0, 1}


@pytest.mark.slow
def test_records_of_this_sweep_are_taken_over_from_the_spool_even_if_fresh(at):
    pool = Hands({"a": {}})

    def on_send(assignment, place):
        if len(pool.sent) == 1:
            pool.work(assignment)  # carried out, but the client does not hear of it
            pool.events.get()
            return Lost(assignment.id, "the worker was lost")
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

    def on_send(assignment, place):
        if assignment.job.process == 0:
            other = Hands({"a": {}})
            at(other, "2x1")
            assert len(other.sent) == 2

    pool.on_send = on_send
    outcome, _ = at(pool, "2x1")
    assert [assignment.job.process for _, assignment in pool.sent] == [0]
    assert (outcome.measured, outcome.reused) == (2, 2)


def test_a_pool_that_goes_ends_the_sweep(at):
    pool = Hands({"a": {}})
    pool.on_send = lambda assignment, place: Gone("it said goodbye")
    with pytest.raises(FleetError, match=r"hands is gone: it said goodbye\. What arrived"):
        at(pool)
    assert len(pool.stopped) == 1


def test_work_that_nobody_can_take_any_more_ends_the_sweep(at, monkeypatch):
    monkeypatch.setattr(sweeping, "HOPE_S", 0.5)
    pool = Hands({"a": {}})
    pool.on_send = lambda assignment, place: Result(assignment.id, [], refused="the disk is full")
    with pytest.raises(FleetError, match=r"1 group\(s\) of cases on cpu are not done.*it resumes"):
        at(pool)


def test_an_assignment_that_brings_nothing_is_not_repeated_for_ever(at):
    pool = Hands({"a": {}})
    pool.on_send = lambda assignment, place: done(assignment)
    outcome, _ = at(pool, "2x1")
    assert outcome.measured == 0
    assert len(pool.sent) == 2


def test_an_order_that_was_begun_here_before_is_not_begun_again(at, tmp_path):
    pool = Hands({"a": {}})

    def on_send(assignment, place):
        if len(pool.sent) == 1:
            spool.store(assignment.owner, assignment.id).open()

    pool.on_send = on_send
    outcome, notes = at(pool)
    assert outcome.measured == 2
    assert len(pool.sent) == 2
    assert "the worker was lost, and has come back. It is done again." in notes[0]
