"""The parts of a fleet that need none to be tried."""

import multiprocessing
import os
import time

import pytest

from harness.declare.location import import_file, locate
from harness.declare.workload import WorkloadError
from harness.engine.context import Options, local_context
from harness.engine.state import Outcome, SweepState
from harness.fleet import machine, sources, spool
from harness.fleet.queue import Queue, Task, Team
from harness.stages import sampling
from tests.sweeps import SUITES, by_axis, sweep, workload

Scale = workload("small", "Scale")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


def team(target="cpu"):
    return Team(target, state=None, groups={})


def test_jobs_are_taken_process_by_process_and_only_by_who_may():
    a, b, tpu = team(), team(), team("tpu")
    tasks = Queue()
    fresh, resumed = Task("fresh", "cpu"), Task("resumed", "cpu", b)
    begun, other = Task("begun", "cpu", a, host="one", process=1), Task("other", "tpu")
    for task in (fresh, resumed, begun, other):
        tasks.put(task)
    assert len(tasks) == 4
    assert tasks.take([tpu], "one") is other
    assert tasks.take([a], "two") is fresh
    assert tasks.take([a], "two") is None, "what was begun on another host stays there"
    tasks.put(fresh)
    assert tasks.take([a, tpu], "one") is fresh, "the first process of all comes first"
    assert tasks.take([a], "one") is begun
    assert tasks.take([a], "one") is None
    assert tasks.take([b], "anywhere") is resumed
    assert not tasks


def test_what_a_machine_that_is_gone_began_is_released_after_a_while(monkeypatch):
    from harness.fleet import queue as module

    monkeypatch.setattr(module, "GRACE_S", 0.05)
    a, b = team(), team()
    tasks = Queue()
    begun = Task("begun", "cpu", a, host="one", process=3)
    fixed = Task("fixed", "cpu", a, fixed=True, host="one", process=3)
    tasks.put(begun)
    tasks.put(fixed)
    tasks.look_for({(a, "one"), (b, "two")})
    tasks.look_for({(b, "two")})
    assert tasks.take([b], "two") is None, "it may come back"
    time.sleep(0.1)
    tasks.look_for({(b, "two")})
    assert tasks.take([b], "two") is begun
    assert (begun.process, begun.host) == (0, "")
    assert tasks.take([b], "two") is None, "one that is fixed waits for its machine"
    assert tasks.take([a], "elsewhere") is fixed


def test_a_machine_that_is_gone_for_the_second_time_has_as_long_again(monkeypatch):
    from harness.fleet import queue as module

    monkeypatch.setattr(module, "GRACE_S", 0.05)
    a, b = team(), team()
    tasks = Queue()
    begun = Task("begun", "cpu", a, host="one", process=3)
    tasks.put(begun)
    tasks.look_for({(b, "two")})
    assert tasks.take([a], "one") is begun, "it is back"
    tasks.look_for({(a, "one"), (b, "two")})
    time.sleep(0.1)
    tasks.put(begun)
    tasks.look_for({(b, "two")})
    assert tasks.take([b], "two") is None


def test_what_is_begun_on_no_process_may_go_anywhere():
    a = team()
    task = Task("one", "cpu", a, host="here")
    task.put_back("lost")
    assert (task.team, task.host, task.retries) == (None, "", ["lost"])
    task = Task("one", "cpu", a, host="here", process=1)
    task.put_back("lost")
    assert (task.team, task.host) == (a, "here")
    task.advance()
    assert task.retries == []


def hold(name, held, end):
    with machine.alone([name], lambda: None):
        held.set()
        end.wait(20)


class Enough(Exception):
    pass


def test_a_device_is_held_against_other_processes_and_waiting_can_end():
    context = multiprocessing.get_context("spawn")
    held, end = context.Event(), context.Event()
    name = f"device-of-{os.getpid()}"
    child = context.Process(target=hold, args=(name, held, end))
    child.start()
    assert held.wait(20)
    looks = []

    def check():
        looks.append(1)
        if len(looks) == 2:
            raise Enough

    with pytest.raises(Enough), machine.alone([name, name + "-another"], check):
        pytest.fail("one of them is held")
    with machine.alone([name + "-another"], check):
        pass
    child.kill()  # whoever holds a device lets go of it, however it ends
    child.join()
    with machine.alone([name], check):
        assert len(looks) == 2


def test_other_users_can_wait_for_a_device_whatever_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        with machine.alone(["shared"], lambda: None):
            (lock,) = tmp_path.glob("*.lock")
            assert lock.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


def test_a_spool_that_cannot_be_written_or_is_full_says_so(place, monkeypatch):
    assert spool.trouble("owner") == ""
    assert list(place.rglob("*.jsonl")) == []
    monkeypatch.setattr(spool, "LEAST_BYTES", 2**60)
    assert "MiB left, fewer than" in spool.trouble("owner")
    monkeypatch.setenv("HARNESS_SPOOL", "/dev/null/spool")
    assert "cannot be written to /dev/null/spool/owner: Not a directory" in spool.trouble("owner")


def test_a_spool_forgets_only_what_the_client_has(place, tmp_path):
    records = sweep([Scale], tmp_path / "results").records
    store = spool.store("owner", "order")
    store.append(records[:1])
    size = spool.size("owner", "order")
    store.append(records[1:2])
    spool.forget("owner", {"order": size, "never": 3})
    assert [r.key for r in spool.kept("owner")] == [r.key for r in records[:2]]
    assert list(spool.fetch("owner")) == ["order"]
    assert spool.fetch("another") == {}
    spool.forget("owner", {"order": spool.size("owner", "order")})
    assert spool.fetch("owner") == {}


def test_owners_differ_by_tree_and_machine_and_name_no_path(tmp_path):
    owners = {spool.owner_of(tmp_path / a, b) for a in ("x", "y") for b in ("one", "two")}
    assert len(owners) == 4
    assert not any("x" in owner and "/" in owner for owner in owners)


def test_books_read_what_others_store_and_not_half_a_line(tmp_path):
    context = local_context(tmp_path, SUITES, "tested")
    state = SweepState(
        [Scale],
        context,
        Options(sampling.effort("1x1"), targets=("cpu",)),
        lambda progress: None,
        Outcome(),
    )
    (group,) = state.groups
    assert len(state.job(group, 0).cases) == 2
    with context.store.path.open("ab") as torn:
        torn.write(b'{"half')
    assert len(state.job(group, 0).cases) == 2
    with context.store.path.open("ab") as torn:
        torn.write(b' a line"}\n')
    sweep([Scale], tmp_path, "1x1", targets=("cpu",))
    assert state.job(group, 0) is None
    assert state.outcome.reused == 2
    assert state.job(group, 0) is None
    assert state.outcome.reused == state.done == 2


def test_a_workload_is_found_where_the_worker_is_then_where_the_client_is(tmp_path, monkeypatch):
    source = locate(Scale)
    assert sources.here(source).file == source.file
    (tmp_path / "troubled").mkdir()
    (tmp_path / "troubled" / "small.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert sources.here(source).file == str(tmp_path / "troubled" / "small.py")
    import msgspec

    gone = msgspec.structs.replace(source, module="nowhere.small", file="/nowhere/small.py")
    assert sources.here(gone) is None
    with pytest.raises(WorkloadError, match=r"there is no nowhere\.small in .*, where the worker"):
        sources.version(gone)
    file = "/nowhere/msgspec/__init__.py"
    installed = msgspec.structs.replace(source, module="msgspec", file=file)
    assert sources.here(installed).file == str(msgspec.__file__)


def test_a_file_that_is_edited_after_planning_fails_with_both_versions(tmp_path):
    file = tmp_path / "edited.py"
    text = (SUITES / "troubled" / "small.py").read_text()
    file.write_text(text)
    before = import_file("edited", file).Scale

    def edit(progress):
        file.write_text(text.replace("* 2", "* 3"))

    outcome = sweep([before], tmp_path / "results", "3x1", on_progress=edit)
    reasons = {record.reason for record in by_axis(outcome, "size").values()}
    assert len(reasons) == 1
    reason = reasons.pop()
    assert "has version " in reason
    assert "where it is measured" in reason
    assert "the source differs. Bring both to one commit" in reason
    assert len([r for r in outcome.records if r.status == "failed"]) == 2, "no second attempt"
