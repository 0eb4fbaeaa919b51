"""`compute`: programs on one thread, in processes that hold the cases of many workloads."""

import shutil
import subprocess
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import harness
from harness.asv.metrics import answers
from harness.declare.workload import Case
from harness.engine import apart_session, state
from harness.engine.session import CaseRun
from harness.frame.load import everything
from harness.frame.tables import stage_table
from harness.records.schema import COMPUTE, FIRST_CALL
from harness.stages import compute
from harness.stages.injection import Injected
from harness.stages.staged_case import ComputeCase, StagedCase
from tests.sweeps import sweep, workload

Scale = workload("small", "Scale")
Inline = workload("inline", "Inline")

ON_ONE_THREAD = """
import os, resource
import jax
from harness.engine.staged_worker import one_thread
with one_thread():
    jax.devices()
assert "NPROC" not in os.environ
call = jax.jit(lambda x: jax.numpy.tanh(x @ x).sum(0) @ x)
x = jax.numpy.ones((300, 300))
call(x).block_until_ready()
before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
for _ in range(200):
    call(x).block_until_ready()
print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before)
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Two workloads, two processes each."""
    results = tmp_path_factory.mktemp("compute")
    return results, sweep([Scale, Inline], results, "2x1", compute=True)


def apart(outcome):
    return [one for one in outcome.records if one.protocol.startswith(COMPUTE)]


@pytest.mark.nightly
def test_a_call_on_one_thread_waits_for_no_other():
    done = subprocess.run([sys.executable, "-c", ON_ONE_THREAD], capture_output=True, check=True)
    assert int(done.stdout) < 20


def test_all_workloads_share_a_process_and_each_record_is_of_its_own_protocol(both):
    _, outcome = both
    good = [one for one in apart(outcome) if one.status == "ok"]
    assert len(good) == 2 * 3
    processes = {(one.replicate[-2:], one.process) for one in good}
    assert len(processes) == len(dict(processes)) == 2, "one for each number, of all workloads"
    for one in good:
        stage = one.stages["compute"]
        visits = compute.VISITS + min(stage.disturbed, 1)
        assert visits >= len(stage.samples_ns) / 4 >= compute.VISITS
        assert len(stage.cpu_ns) == len(stage.samples_ns)
        assert list(one.stages) == ["trace", "lower", "compile", "compute"]
        assert len(one.stages["compile"].cpu_ns) == len(stage.samples_ns) / 4, "built anew"
        assert one.reference_ns["loop"] > 0
        assert one.fingerprint
        assert one.facts.hlo_instructions > 0
    usual = [one for one in outcome.records if not one.protocol.startswith(COMPUTE)]
    assert not {one.key for one in usual} & {one.key for one in good}
    assert not {one.process for one in usual} & {one.process for one in good}
    assert {bytes(one.environment) for one in usual} == {bytes(one.environment) for one in good}


def test_a_case_that_kills_the_process_or_raises_costs_only_itself(both):
    _, outcome = both
    troubled = {
        (one.axes["trouble"], one.replicate[-2:]): (one.status, one.reason)
        for one in apart(outcome)
        if one.workload == "inline.Inline"
    }
    for number in ("#0", "#1"):
        assert troubled["none", number][0] == "ok"
        status, reason = troubled["raise", number]
        assert (status, "not inline" in reason) == ("failed", True)
        status, reason = troubled["kill", number]
        assert (status, "SIGKILL" in reason) == ("failed", True)
    told = {(bytes(one.environment), *one.contained) for one in apart(outcome)}
    assert len(told) == 1, "also of what was killed"


def test_a_record_stands_for_the_code_of_its_own_workload(both):
    _, outcome = both
    files = {
        one.workload: [name for name in one.code if name.endswith((".inline", "inline.py"))]
        for one in apart(outcome)
        if one.status == "ok"
    }
    assert not files["small.Scale"]
    assert files["inline.Inline"]


def test_it_stands_beside_the_other_stages_everywhere(both):
    results, outcome = both
    table = stage_table(everything(results))
    columns = list(table.columns)
    assert columns.index("compute") == columns.index("execute") + 1
    scale = table[table["workload"] == "small.Scale"]
    assert len(scale) == 2
    assert (scale["compute"].str.contains("s")).all()
    cases = answers(Scale, outcome.records)["cases"]
    assert all(len(case["compute"]["samples"]) == 2 for case in cases.values())
    facts = harness.program_facts(results)
    assert not facts.duplicated(["workload", "size", "trouble", "fact", "kind"]).any()
    rows = everything(results, where={"stage": "compute", "workload": "small.Scale"})
    one, other = rows["processes"]
    assert one == other
    assert len(set(one)) == 2


@pytest.mark.parametrize("size", [8, 16])
def test_cpu_times_of_a_build_are_those_of_the_process_of_many_workloads(both, size):
    results, outcome = both
    frame = everything(results)
    own = (frame["workload"] == "small.Scale") & (frame["size"] == size)
    rows = frame[own].set_index("stage")
    taken = {one.process: one for one in apart(outcome) if one.axes.get("size") == size}
    assert rows.index.is_unique
    for stage in ("trace", "lower", "compile"):
        row = rows.loc[stage]
        assert row["cpu_processes"] == rows.loc["compute", "processes"] != row["processes"]
        visits = [np.array(taken[name].stages[stage].cpu_ns) for name in row["cpu_processes"]]
        assert all(map(len, visits))
        least = np.log([one.min() for one in visits])
        mean = [np.log(one).mean() for one in visits]
        expected = (least + mean) / 2 if stage == "compile" else least
        assert row["cpu_samples"] == pytest.approx(np.exp(expected) / 1e9)
    assert rows.loc["execute", "cpu_processes"] == rows.loc["execute", "processes"]


@pytest.mark.nightly
def test_a_second_run_measures_only_what_is_not_there(both):
    results, _ = both
    again = sweep([Scale], results, "3x1", compute=True)
    assert again.reused == 2 * 2 * 2
    assert again.measured == 2 * 2
    assert {one.replicate[-2:] for one in apart(again)} == {"#0", "#1", "#2"}


@pytest.mark.nightly
def test_a_case_that_takes_long_apart_gets_fewer_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "APART_S", 0.001)
    outcome = sweep([Scale], tmp_path, "2x1", compute=True, first_calls=3)
    for protocol in (COMPUTE, FIRST_CALL):
        own = [one for one in outcome.records if one.protocol.startswith(protocol)]
        assert [one.replicate[-2:] for one in own] == ["#0", "#0"]


@pytest.mark.parametrize(("long_s", "visits"), [(1e-9, 1), (5.0, compute.VISITS)])
def test_a_case_that_compiles_long_is_visited_once_in_a_process(monkeypatch, proof, long_s, visits):
    monkeypatch.setattr(apart_session, "LONG_S", long_s)
    monkeypatch.setattr(compute, "UNDISTURBED", 0)
    session = SimpleNamespace(timed_ns=0.0, current=SimpleNamespace(write=lambda visit: None))
    session.finish = lambda run: None
    case = ComputeCase(Scale, Case({"size": 8}, "forward", "cpu"), proof)
    run = CaseRun(session, None, case)
    apart_session._visit({"one": run}, seed=1)
    assert run.passes == len(case.samples["compile"].samples_ns) == visits


@pytest.mark.nightly
def test_extra_work_is_put_into_its_calls_and_marked(both, tmp_path):
    shutil.copytree(both[0], tmp_path, dirs_exist_ok=True)
    cases = [Case({"size": size}, "forward", "cpu").id for size in (8, 16)]
    medians = {f"small.Scale {case}": {"compute": 1e5} for case in cases}
    medians[f"small.Scale {cases[0]}"]["compile"] = 20e6
    slow = Injected({"compute": 1.0, "compile": 9.0}, medians)
    asked = {"compute": True, "injected": slow}
    lengthy = sweep([Scale], tmp_path, "1x1", **asked)
    usual, longer = (
        {
            (r.axes["size"], next(s for s in ("compute", "execute") if s in r.stages)): r
            for r in outcome.records
            if r.workload == "small.Scale" and r.replicate.endswith("#0")
        }
        for outcome in (both[1], lengthy)
    )
    assert len(usual) == len(longer) == 4
    for of, one in usual.items():
        assert longer[of].protocol == f"{one.protocol} with {slow.mark}"
        # No median of its compile is known: that is left alone.
        assert (longer[of].fingerprint == one.fingerprint) == (of == (16, "execute"))
    assert not {r.key for r in both[1].records} & {r.key for r in lengthy.records}
    again = sweep([Scale], tmp_path, "1x1", **asked)
    assert (lengthy.reused, again.measured, again.reused) == (0, 0, lengthy.measured)


def test_what_is_no_cpu_says_why_it_has_none(proof, monkeypatch):
    case = StagedCase(Scale, Case({"size": 8}), proof)
    assert "compute" not in case.stages()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert case.stages()["compute"].reason == compute.ONLY_ON_A_CPU
