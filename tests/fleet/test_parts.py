"""The parts of a fleet that need none to be tried."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from distributed.config import defaults

from harness.declare.location import import_file, locate
from harness.engine import lock
from harness.engine.context import Options, local_context
from harness.engine.outcome import Outcome
from harness.engine.state import SweepState
from harness.fleet import place, sources
from harness.fleet.place import Place, Question
from harness.fleet.tasks import HostLoops, Task, Team, keys
from harness.records import environment
from harness.records.git import Commit
from harness.stages import sampling
from tests.sweeps import SUITES, by_axis, sweep, workload

Scale = workload("small", "Scale")


@pytest.fixture
def here():
    """What this process says of itself."""
    return said(sources=[])


def said(**asked):
    question = msgspec.msgpack.encode(Question(**asked))
    return msgspec.msgpack.decode(place.answer(question), type=Place)


def but(found, **changes):
    return msgspec.structs.replace(found, **changes)


# Which worker may take what


def team(machine, target="cpu"):
    return Team(target, machine, state=None, groups={})


def test_what_was_begun_stays_where_it_was_begun_and_a_case_with_its_class():
    a, b, tpu = team("x"), team("y"), team("x", "tpu")
    fresh, resumed = Task("fresh", "cpu", 1), Task("resumed", "cpu", 2, home="y")
    begun = Task("begun", "cpu", 3, home="x", team=a, host="one", process=1)
    assert fresh.key in keys([a], "one")
    assert fresh.key in keys([b], "two")
    assert fresh.key not in keys([tpu], "one")
    assert resumed.key in keys([b], "anywhere")
    assert resumed.key not in keys([a], "one")
    assert begun.key in keys([a], "one")
    assert begun.key not in keys([a], "two")
    begun.put_back("lost")
    assert (begun.team, begun.host, begun.retries) == (a, "one", ["lost"])
    begun.advance()
    assert begun.retries == []
    begun.release()
    assert begun.key in keys([a], "two")
    assert begun.key not in keys([b], "two"), "its class measured it before"
    first = Task("first", "cpu", 4, team=a, host="one")
    first.put_back("lost")
    assert (first.team, first.host) == (None, ""), "nobody has finished a process of it"
    fixed = Task("fixed", "cpu", 5, team=a, fixed=True, host="one", process=3)
    fixed.release()
    assert (fixed.team, fixed.host, fixed.process) == (a, "", 0)


def test_a_host_whose_loop_is_far_off_its_class_is_told_and_two_hosts_tell_nothing():
    loops, hosts = HostLoops(), {"one": 100.0, "two": 102.0}
    said = [loops.outlying(host, ns) for _ in range(4) for host, ns in hosts.items()]
    said += [loops.outlying("three", 160.0) for _ in range(2)]
    assert not any(said), "two hosts, and two processes of a third, say nothing"
    assert loops.outlying("three", 160.0) == (
        "its plain loop takes 1.57 times as long as the median of 3 hosts of its class"
    )
    assert loops.outlying("one", 100.0) == ""


# Devices


class Enough(Exception):
    pass


def test_a_device_is_held_against_others_and_waiting_can_end():
    looks = []

    def check(holder):
        assert f"process {os.getpid()} (" in holder or not lock.LOCKS.exists()
        looks.append(1)
        if len(looks) == 2:
            raise Enough

    def both():
        with lock.alone(["one", "another"], check):
            pytest.fail("one of them is held")

    with lock.alone(["one"], check), ThreadPoolExecutor() as other:
        with pytest.raises(Enough):
            other.submit(both).result()
        with lock.alone(["another"], check):
            pass
    with lock.alone(["one"], check):
        assert len(looks) == 2


def test_other_users_can_wait_for_a_device_whatever_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        with lock.alone(["shared"], lambda holder: None):
            (file,) = tmp_path.glob("*.lock")
            assert file.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


def test_gpus_are_told_apart_by_what_no_other_has(here):
    task, other = but(here, gpus=["GPU-aa"]), but(here, gpus=["GPU-bb"])
    both = but(here, gpus=["GPU-aa", "GPU-bb"])
    assert set(task.devices("gpu")).isdisjoint(other.devices("gpu"))
    assert set(both.devices("gpu")) == {*task.devices("gpu"), *other.devices("gpu")}
    assert but(here, gpus=[]).devices("gpu") == [f"{here.host}/gpu"]
    assert both.devices("gpu:h200") == both.devices("cpu") == [f"{here.host}/cpu"]


BOTH = {"GPU-aa": "NVIDIA H200", "GPU-bb": "NVIDIA H200"}


@pytest.mark.parametrize(
    ("last", "wanted", "found"),
    [
        ("", None, BOTH),
        ("", "1", {"GPU-bb": "NVIDIA H200"}),
        ("", "MIG-cc", BOTH),
        ("", "", {}),
        ("", "-1", {}),
        ("exit 9", None, {}),
    ],
)
def test_gpus_are_what_the_driver_says(tmp_path, monkeypatch, last, wanted, found):
    command = tmp_path / "nvidia-smi"
    command.write_text(
        '#!/bin/sh\ncase "$3" in\n--id=MIG*) exit 6;;\n--id=1) ;;\n'
        '*) echo "GPU-aa, NVIDIA H200";;\nesac\n'
        f'echo "GPU-bb, NVIDIA H200"\n{last}\n'
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if wanted is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", wanted)
    place.visible_gpus.cache_clear()
    try:
        assert place.visible_gpus() == found
    finally:
        place.visible_gpus.cache_clear()


# The environment of a worker


def test_a_plugin_that_is_upgraded_under_a_worker_makes_it_another_one(tmp_path, monkeypatch):
    def install(version):
        folder = tmp_path / f"jax_cuda99_plugin-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: jax-cuda99-plugin\nVersion: {version}\n")
        return folder

    monkeypatch.syspath_prepend(tmp_path)
    old = install("1.0")
    try:
        place.versions()
        before = environment.identity()
        assert environment.plugins()["jax-cuda99-plugin"] == "1.0"
        shutil.rmtree(old)
        install("2.0")
        place.versions()
        assert environment.identity() != before
    finally:
        monkeypatch.undo()
        place.versions()


def test_what_a_nanny_adds_is_known_and_what_a_user_sets_stays():
    added = defaults["distributed"]["nanny"]["pre-spawn-environ"]
    found = {name: str(value) for name, value in added.items()} | {"PYTHONHASHSEED": "6640"}
    assert "OMP_NUM_THREADS" in found
    assert set(place.added_by_nanny(found, {})) == set(found)
    own = {**found, "OMP_NUM_THREADS": "4", "HOME": "/"}
    left = place.added_by_nanny(own, {"MKL_NUM_THREADS": "1"})
    assert set(left) == set(found) - {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}


# What is refused


def of_jax(version):
    return {**environment.versions(), "jax": version}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"versions": of_jax("0.0.1")}, "has jax 0.0.1, and here it is "),
        ({"versions": of_jax("")}, "has jax not at all, and here it is "),
        ({"workloads": {"w": "other"}}, "has w in version other, and here it is mine"),
        ({"broken": {"w": "no"}}, "cannot use w: no"),
        ({"commit": "b" * 40}, "is at commit bbbbbbbb, and here it is aaaaaaaa"),
        ({"dirty": "d1"}, "has uncommitted changes (d1) since commit aaaaaaaa, and here there "),
        ({"trouble": "full"}, "cannot put records into the store: full"),
        *(
            ({"kind": name}, f"calls its machine {name!r}, which cannot name a folder")
            for name in ("a/b", "..", ".", "a/", "", "a\n", "\x1b[2J", ".git")
        ),
        ({"machine": "../up"}, "calls its machine '../up', which cannot name a folder"),
        ({"env": "e/../.."}, "calls its environment 'e/../..', which cannot be part of"),
        ({"versions": {}}, "has jax not at all, and here it is "),
        ({"workloads": {}}, "has w in version None, and here it is mine"),
        ({}, ""),
    ],
)
def test_what_does_not_fit_is_said_with_both_versions(here, changes, reason):
    found = but(here, **{"commit": "a" * 40, "workloads": {"w": "mine"}, **changes})
    text = place.unfit(found, Commit("a" * 40), {"w": "mine"}, False)
    assert text.startswith(reason)
    assert bool(text) == bool(reason)


def test_a_workload_that_is_not_there_is_said_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaving.py").write_text("raise SystemExit('not today')")
    gone = msgspec.structs.replace(locate(Scale), file="/nowhere/small.py")
    leaving = msgspec.structs.replace(gone, module="leaving", file="/nowhere/leaving.py")
    found = said(sources=[gone, leaving])
    text = place.unfit(found, Commit(), {"troubled.small.Scale": "2.0/2.0"}, False)
    assert text.startswith("cannot use troubled.small.Scale: there is no troubled.small in ")
    assert "Start it in the folder that holds the workloads' package" in text
    assert found.broken["leaving.Scale"] == "SystemExit: not today"


def test_a_workload_is_found_where_the_worker_is_then_where_the_client_is(tmp_path, monkeypatch):
    source = locate(Scale)
    assert sources.here(source).file == source.file
    (tmp_path / "troubled").mkdir()
    (tmp_path / "troubled" / "small.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert sources.here(source).file == str(tmp_path / "troubled" / "small.py")
    gone = msgspec.structs.replace(source, module="nowhere.small", file="/nowhere/small.py")
    assert sources.here(gone) is None
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
    (reason,) = {record.reason for record in by_axis(outcome, "size").values()}
    assert "has version " in reason
    assert "where it is measured" in reason
    assert "the source differs. Bring both to one commit" in reason
    assert len([r for r in outcome.records if r.status == "failed"]) == 2, "no second attempt"


# What others store meanwhile


def test_a_state_reads_what_others_store_and_not_half_a_line(tmp_path):
    context = local_context(tmp_path, SUITES, "tested")
    asked = Options(sampling.effort("1x1"), targets=("cpu",))
    state = SweepState([Scale], context, asked, lambda progress: None, Outcome())
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
