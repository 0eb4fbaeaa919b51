"""First calls: each in a process of its own that has never seen the function."""

import json
from pathlib import Path

import msgspec
import pytest

from harness.frame.load import frame_of
from harness.frame.startup import cache_effectiveness
from harness.measure.process import MeasuringProcess
from harness.output.tables import collected_text, stage_table
from harness.records.schema import FIRST_CALL
from harness.records.units import share_text
from tests.sweeps import sweep, workload

Scale = workload("small", "Scale")
SCENARIOS = ("off", "cold", "warm", "default")


def calls(outcome, name=""):
    """The records of first calls."""
    return [r for r in outcome.records if r.protocol == FIRST_CALL and r.workload.endswith(name)]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What is called first in one process each, in several ways."""
    names = ("Littering", "Due", "Seen", "Jitted", "Several", "LeftOut")
    chosen = [workload("first", name) for name in names]
    return sweep(chosen, tmp_path_factory.mktemp("first"), seed=1)


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    """A case in every scenario, called twice; and the jobs of the processes, in order."""
    jobs, measure = [], MeasuringProcess.measure
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MeasuringProcess, "measure", lambda p: jobs.append(p.job) or measure(p))
        results = tmp_path_factory.mktemp("everywhere")
        one = {"keep": lambda case: case.axes["size"] == 8, "first_calls": 2}
        return sweep([Scale], results, scenarios=SCENARIOS, **one), jobs


def test_a_first_call_has_a_process_of_its_own_in_every_scenario(everywhere):
    outcome, jobs = everywhere
    found = {(r.scenario, r.axes["size"], r.replicate[-2:]) for r in calls(outcome)}
    assert found == {(s, 8, k) for s in SCENARIOS for k in ("#0", "#1")}
    assert {r.status for r in calls(outcome)} == {"ok"}
    own = [job for job in jobs if job.first_call]
    assert all(len(job.cases) == 1 for job in own)
    # `default` needs another process that fills its directory, `warm` has that of `cold`.
    assert len(own) == len(calls(outcome)) + 2


def test_the_scenarios_of_a_case_follow_each_other_and_cold_fills_what_warm_reads(everywhere):
    _, jobs = everywhere
    own = [(job.process, job.cases[0].index, job.scenario) for job in jobs if job.first_call]
    turns = [own[start : start + 5] for start in range(0, len(own), 5)]
    assert len({turn[:2] for turn in own}) == len(turns) == 2
    for turn in turns:
        assert len({each[:2] for each in turn}) == 1
        order = [scenario for *_, scenario in turn]
        assert order.index("warm") == order.index("cold") + 1
    folders = {job.scenario: job.cache_folder for job in jobs if job.first_call}
    assert folders["cold"] == folders["warm"] != folders["default"]


def test_a_start_is_one_span_from_the_start_of_the_process_to_the_first_result(everywhere):
    outcome, _ = everywhere
    for record in calls(outcome):
        (first,) = record.stages["first_call"].samples_ns
        (start,) = record.stages["start"].samples_ns
        assert start > first + 1e7


def test_a_visit_takes_no_first_call_and_neither_is_forked_where_that_would_tell(everywhere):
    outcome, _ = everywhere
    others = [r for r in outcome.records if r.protocol != FIRST_CALL]
    assert {stage for r in others for stage in r.stages}.isdisjoint({"first_call", "start"})
    found = [(r.parent, r.not_forked) for r in others if r.scenario == "cold"]
    assert set(found) == {("", "it has a directory of its own")}
    found = [(r.parent, r.not_forked) for r in calls(outcome)]
    assert set(found) == {
        ("", "its first call pays what a process pays once, and forked it pays more")
    }


def test_first_calls_stand_beside_the_stages_of_their_case(everywhere):
    frame = frame_of(everywhere[0].records)
    table = stage_table(frame)
    assert len(table) == 4
    assert (table["first_call"] != "").all()
    rows = frame[frame["stage"] == "first_call"]
    assert set(rows["n_processes"]) == {2}
    assert (rows["collected_s"] >= 0).all()
    assert rows["calibrated"].notna().all()
    assert set(rows["fingerprint"]) == set(
        frame[(frame["stage"] == "compile") & (frame["workload"] == "small.Scale")]["fingerprint"]
    )
    table = cache_effectiveness(frame)
    assert list(table["size"]) == [8]
    ratio = table["first_call_warm_s"] / table["first_call_cold_s"]
    assert table["relative_warm"].equals(ratio)
    assert (table["entry_bytes"] > 100).all()
    assert table["saved_s"].equals(table["compile_s"] - table["load_s"])


@pytest.mark.nightly
def test_what_the_garbage_collector_takes_is_part_of_a_first_call_and_told(outcome):
    for record in calls(outcome, "Littering"):
        samples = record.stages["first_call"]
        assert 0 < samples.collected_ns[0] < samples.samples_ns[0]  # a part of it
    frame = frame_of(calls(outcome, "Littering"))
    rows = frame[frame["stage"] == "first_call"]
    share = (rows["collected_s"] / rows["value"]).median()
    said = collected_text(frame)
    assert f"garbage collector took {share_text(share, 1)} (median" in said
    assert said.endswith("first.Littering).")


@pytest.mark.nightly
def test_a_collection_that_was_due_before_a_first_call_is_no_part_of_it(outcome):
    assert [r.status for r in calls(outcome, "Due")] == ["ok"]


@pytest.mark.parametrize("scenario", ["cold", "warm"])
def test_a_call_of_what_the_process_had_traced_is_refused_as_a_first_call(outcome, scenario):
    found = {r.axes["seen"]: r for r in calls(outcome, "Seen") if r.scenario == scenario}
    assert found[False].status == "ok"
    assert found[True].status == "refused"
    for samples in found[True].stages.values():
        assert samples.samples_ns == []
        assert list(samples.refused) == [
            "this process had traced a function named function before: that may be no first call"
        ]


def test_the_user_s_own_object_and_every_way_to_use_two_devices_have_first_calls(outcome):
    assert {r.status for r in calls(outcome, "Jitted")} == {"ok"}
    several = [r for r in outcome.records if r.workload.endswith("Several")]
    assert {r.status for r in several} == {"ok"}
    assert {r.protocol == FIRST_CALL for r in several} == {True, False}
    devices = {r.transform: json.loads(bytes(r.environment))["devices"] for r in several}
    assert devices == {"forward": 1, "sharded": 2, "pmap": 2}


def test_first_calls_are_left_out_by_a_workload_that_wants_none(outcome):
    assert calls(outcome, "LeftOut") == []


@pytest.mark.nightly
def test_a_warm_first_call_that_the_cache_did_not_answer_is_refused(tmp_path, monkeypatch):
    measure, kept = MeasuringProcess.measure, []

    def tamper(process):
        job = process.job
        if job.first_call and job.scenario == "warm":
            (file,) = Path(job.cache_folder).glob("jit_function-*-cache")
            kept.append(file.read_bytes())
            if len(kept) == 1:
                file.unlink()
            else:
                file.write_bytes(kept[0])  # another program
        return measure(process)

    monkeypatch.setattr(MeasuringProcess, "measure", tamper)
    outcome = sweep([workload("first", "Factor")], tmp_path, scenarios=("warm",), first_calls=1)
    removed, other = [list(r.stages["first_call"].refused) for r in calls(outcome)]
    assert "the label needs" in removed[0]
    assert other == ["the cache answered with another program than was put into it"]


def test_what_older_releases_called_a_first_call_has_another_name(everywhere):
    new = calls(everywhere[0])
    old = [
        msgspec.structs.replace(r, protocol="3 passes", key=f"old {r.key}", version="2.old")
        for r in new
    ]
    frame = frame_of([*new, *old])
    ok = frame[frame["status"] == "ok"]
    assert set(zip(ok["version"] == "2.old", ok["stage"], strict=True)) == {
        *((False, "first_call"), (False, "start")),
        *((True, "used_first_call"), (True, "used_start")),
    }
    assert set(frame[frame["stage"] == "first_call"]["n_processes"]) == {2}
