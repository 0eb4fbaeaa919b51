from __future__ import annotations

from pathlib import Path

import pytest

from harness.cache.experiments import sharing, subjects
from harness.cache.experiments.sharing import Arrangement, Process, Program, Report, Round
from harness.errors import UsageError

SMALL = Path(__file__).parents[1] / "suites" / "troubled"


def scale():
    workload = subjects.one_workload("Scale", SMALL)
    return workload, subjects.cases_of(workload)


@pytest.fixture(scope="module")
def report():
    """Two independent processes, and a job of two; share_binary may wait for its time-out."""
    with pytest.MonkeyPatch.context() as patch:
        wanted = sharing.arrangements(2)[:2]
        patch.setattr(sharing, "arrangements", lambda processes: wanted)
        yield sharing.share(*scale(), processes=2)


def totals(report, arrangement, scenario):
    rows = sharing.summary(report)
    chosen = rows[(rows.arrangement == arrangement) & (rows.scenario == scenario)]
    return chosen[chosen.process == "all"].iloc[0], chosen[chosen.process != "all"]


def test_independent_processes_compile_at_least_once_and_then_all_load(report):
    cold, each = totals(report, "2 independent", "cold")
    assert cold.requests == 4
    assert cold["keys"] == 2
    assert cold.compiled == cold.requests - cold.loaded >= 2
    assert cold.wasted == cold.compiled - 2
    assert each.compiled.sum() == cold.compiled
    assert cold.entries == "0 → 2"
    warm, _ = totals(report, "2 independent", "warm")
    assert (warm.loaded, warm.compiled, warm.entries) == (4, 0, "2 → 2")


def test_only_process_0_of_a_distributed_job_writes(report):
    rounds = [r for r in report.rounds if r.arrangement == "2 distributed"]
    if rounds[0].reason:
        pytest.skip(rounds[0].reason)
    _, each = totals(report, "2 distributed", "cold")
    assert list(each.wrote) == [2, 0]
    warm, each = totals(report, "2 distributed", "warm")
    assert next(iter(each.loaded)) == 2
    assert warm.compiled == warm.requests - warm.loaded


def test_the_events_prove_every_process(report):
    assert [p.problem for r in report.rounds for p in r.processes if p.problem] == []


def test_events_that_contradict_what_was_noted_are_said():
    program = Program("a", 0.0, 1.0, "key", compile_s=1.0, write="wrote")
    assert Process([program], {"requests": 1, "hits": 0}).problem == ""
    assert "events show" in Process([program], {"requests": 1, "hits": 1}).problem


def test_wasted_and_repeated_compilations_are_told_apart():
    def compiled(key):
        return Process([Program("a", 0.0, 1.0, key, compile_s=1.0)], {})

    def waste(*keys):
        round_ = Round("x", "cold", 0, 1, [compiled(key) for key in keys])
        row = sharing.summary(Report("w", ["a"], {}, [round_])).iloc[-1]
        return row.wasted, row.repeated

    assert waste("one", "one", "one") == (2, 2)
    assert waste("one", "other") == (0, 1)


def test_who_received_an_executable_is_said_to_have_waited():
    received = Program("a", 0.0, 2.0, "key")
    assert (received.outcome, received.waited_s) == ("received", 2.0)
    locked = Program("a", 0.0, 2.0, "key", loaded=True, lock_wait_s=0.5)
    assert (locked.outcome, locked.waited_s) == ("loaded", 0.5)


def test_a_bounded_cache_shows_the_wait_for_its_lock(monkeypatch):
    monkeypatch.setattr(sharing, "arrangements", lambda processes: (Arrangement("2", 2),))
    found = sharing.share(*scale(), processes=2, max_size_bytes=10**9)
    frame = sharing.frame(found)
    assert (frame.lock_wait_s > 0).all()
    assert (frame.waited_s >= frame.lock_wait_s).all()


def test_processes_that_do_not_agree_on_a_key_are_told_what_to_switch_off():
    error = sharing.ChildError("DEADLINE_EXCEEDED: GetKeyValue() timed out with key: jit_f-1")
    assert "leave jax_share_binary_between_hosts off" in sharing._reason(error)
    assert sharing._reason(sharing.ChildError("another")) == "another"


def test_one_process_cannot_share():
    with pytest.raises(UsageError, match=r"processes is 1; sharing needs at least 2"):
        sharing.share(*scale(), processes=1)
