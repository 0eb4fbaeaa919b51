from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cache.experiments import sharing, sharing_tables, subjects
from harness.cache.experiments.sharing import Arrangement, Process, Program, Report, Round
from harness.cache.ledger import Event
from harness.declare import discovery
from harness.errors import UsageError
from harness.watch.ledger import events

ROOT = Path(__file__).resolve().parents[2]

SMALL = Path(__file__).parents[1] / "suites" / "troubled"


def scale():
    workload = discovery.one_workload("Scale", SMALL)
    return workload, subjects.cases_of(workload)


@pytest.fixture(scope="module")
def report():
    """Two independent processes, and a job of two; share_binary may wait for its time-out."""
    with pytest.MonkeyPatch.context() as patch:
        wanted = sharing.arrangements(2)[:2]
        patch.setattr(sharing, "arrangements", lambda processes: wanted)
        yield sharing.share(*scale(), processes=2)


def totals(report, arrangement, scenario):
    rows = sharing_tables.summary(report)
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
        row = sharing_tables.summary(Report("w", ["a"], {}, [round_])).iloc[-1]
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
    frame = sharing_tables.frame(found)
    assert (frame.lock_wait_s > 0).all()
    assert (frame.waited_s >= frame.lock_wait_s).all()


def test_processes_that_do_not_agree_on_a_key_are_told_what_to_switch_off():
    error = sharing.ChildError("DEADLINE_EXCEEDED: GetKeyValue() timed out with key: jit_f-1")
    assert "leave jax_share_binary_between_hosts off" in sharing.reason_of(error)
    assert sharing.reason_of(sharing.ChildError("another")) == "another"


def event(**fields):
    return Event(events.SCHEMA, 0.0, 1, "", "", "jit_a", **{"outcome": "unwritten", **fields})


@pytest.mark.parametrize(
    ("fields", "write"),
    [
        ({"outcome": "written", "write_s": 1.0}, "wrote"),
        ({"reason": events.ALREADY_THERE, "write_s": 1.0}, "already there"),
        ({"reason": events.UNREADABLE_IN_PLACE, "write_s": 1.0}, "already there"),
        ({"reason": events.ERROR, "write_s": 1.0}, "not stored"),
        ({"reason": events.OVER_CAP, "write_s": 1.0}, "not stored"),
        ({"reason": events.NOT_PROCESS_0}, ""),
        ({"outcome": "hit"}, ""),
    ],
)
def test_an_event_of_the_ledger_says_who_wrote(fields, write):
    assert sharing.program("a", 0.0, 1.0, event(**fields)).write == write


def test_what_the_ledger_took_is_no_time_of_the_program():
    noted = event(key="key", compile_s=0.5, lock_wait_s=0.25, own_s=0.125)
    found = sharing.program("a", 0.0, 1.0, noted)
    assert found == Program("a", 0.0, 0.875, "key", compile_s=0.5, lock_wait_s=0.25)


PART = """
import json, sys
import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from harness.cache.ledger import ledger
number, address = int(sys.argv[1]), sys.argv[2]
if address:
    jax.distributed.initialize(address, 2, number)
everywhere = NamedSharding(Mesh(jax.devices(), ("devices",)), PartitionSpec())
print("met", flush=True)
x = jax.ShapeDtypeStruct((3,), "float32", sharding=everywhere)
with ledger() as found:
    jax.jit(lambda x: x + 1).lower(x).compile()
print(json.dumps({part.name: part.sha256 for part in found.events[0].components}))
if address:
    jax.distributed.shutdown()
"""


def key_parts(processes):
    """Return the parts of the key of one program, in each process of a job."""
    address = f"127.0.0.1:{sharing.free_port()}" if processes > 1 else ""
    variables = {
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PART, str(number), address],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    try:
        said = [process.communicate(timeout=120) for process in started]
    finally:
        for process in started:
            process.kill()
    for out, stderr in said:
        if "met" not in out:
            pytest.skip(f"no distributed job here: {stderr[-300:]}")
    assert [process.returncode for process in started] == [0] * processes, said
    return [json.loads(out.splitlines()[-1]) for out, _ in said]


def test_keys_of_a_distributed_job_differ_in_the_accelerator_config_alone():
    """As docs/cache/README.md says; a JAX that mends it fails here, and the page has to change."""
    first, second = key_parts(2)
    assert {name for name in first if first[name] != second[name]} == {"accelerator_config"}
    [alone] = key_parts(1)
    assert alone["accelerator_config"] == first["accelerator_config"]


def test_one_process_cannot_share():
    with pytest.raises(UsageError, match=r"processes is 1; sharing needs at least 2"):
        sharing.share(*scale(), processes=1)
