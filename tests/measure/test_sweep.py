"""Sweeps: real processes, real JAX, and everything that can go wrong with them."""

import itertools
import json
import os
import subprocess
import sys

import pytest

import harness
from harness.asv.metrics import answers
from harness.errors import StoreError
from harness.records.schema import Problems
from harness.records.store import Store
from harness.stages import blocks, sampling
from harness.stages.registry import CASE_STAGES, PROCESS_STAGES, STAGES, values_ns
from tests.sweeps import by_axis, sweep, workload

Scale = workload("small", "Scale")
Troubled, LookedUp = (workload("bad", name) for name in ("Troubled", "LookedUp"))


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """Two processes of two passes, measured once for several tests."""
    results = tmp_path_factory.mktemp("twice")
    return results, sweep([Scale], results, "2x2", seed=7)


def records(outcome, name):
    return [record for record in outcome.records if record.workload == name]


def test_every_process_measures_every_case_in_every_stage(twice):
    _, outcome = twice
    cases = records(outcome, "small.Scale")
    measured = sorted((r.axes["size"], r.replicate[-2:]) for r in cases)
    assert measured == list(itertools.product((8, 16), ("#0", "#1")))
    for record in cases:
        assert record.status == "ok"
        assert list(record.stages) == list(CASE_STAGES)
        for stage in CASE_STAGES[:3]:
            assert len(record.stages[stage].samples_ns) == len(record.stages[stage].cpu_ns) == 2
        assert len(record.stages["execute"].samples_ns) == 2 * sampling.BLOCKS
        assert min(values_ns(record.stages).values()) > 0
        execute, dispatch = (record.stages[stage] for stage in ("execute", "dispatch"))
        assert execute.calls.least_ns == min(execute.samples_ns) <= execute.calls.p10_ns
        assert execute.calls.calls >= len(execute.samples_ns)
        assert dispatch.calls.least_ns <= min(dispatch.samples_ns)
        assert dispatch.calls.calls >= len(dispatch.samples_ns) == 2 * blocks.BLOCKS
        assert record.stages["in_flight"].calls is None


def test_every_process_also_measures_itself_and_the_reference(twice):
    _, outcome = twice
    processes = records(outcome, "process")
    assert [sorted(record.stages) for record in processes] == [sorted(PROCESS_STAGES)] * 2
    assert len(records(outcome, "reference")) == 2
    most_ns = 1e9 * 600  # no clock's own reading
    assert all(0 < ns < most_ns for record in processes for ns in values_ns(record.stages).values())
    ids = {(record.replicate, record.process) for record in outcome.records}
    assert len(ids) == len({process for _, process in ids}) == 2, "one id for all of a process"
    for record in outcome.records:
        assert {stage.calibrated_by for stage in STAGES.values()} <= set(record.reference_ns)


def test_records_say_where_and_of_what_they_are(twice):
    _, outcome = twice
    on_linux = sys.platform == "linux"
    for record in outcome.records:
        environment = json.loads(bytes(record.environment))
        assert environment["flags"]["JAX_ENABLE_COMPILATION_CACHE"] == "0"
        assert {"python", "jax", "jaxlib", "host", "device", "x64"} <= set(environment)
        assert environment["host"]["affinity"] >= 1
        assert record.machine == "tested"
        assert record.seed == 7
        assert len(record.load_average) == 3
        assert record.contained == (["ends with its parent", "memory"] if on_linux else [])
    fingerprints = {(r.axes["size"], r.fingerprint) for r in records(outcome, "small.Scale")}
    assert len(fingerprints) == 2, "the same program has the same fingerprint in every process"


def test_what_was_measured_is_reused_and_what_differs_is_measured(twice, monkeypatch):
    results, first = twice

    def counts(effort, **options):
        outcome = sweep([Scale], results, effort, **options)
        counts.outcome = outcome
        return outcome.measured, outcome.reused

    assert counts("2x2") == (0, 4)
    assert {r.replicate for r in counts.outcome.records} <= {r.replicate for r in first.records}
    assert counts("3x2") == (2, 4)  # a process more is added to what there is
    assert counts("1x1") == (2, 0)  # another number of passes
    with monkeypatch.context() as patch:
        patch.setenv("XLA_FLAGS", "--xla_dump_max_hlo_modules=3")
        assert counts("1x1") == (2, 0)
    assert counts("1x1", fresh=True) == (2, 0)
    (record, *others) = records(counts.outcome, "small.Scale")
    (file,) = results.glob("*/records/*.jsonl")
    kept = [r for r in Store(file).read() if r.key in (record.key, *(r.key for r in others))]
    assert {r.sweep for r in kept} == {record.sweep}, "it replaces what was there"


def test_a_case_that_misbehaves_costs_only_itself(tmp_path):
    def hangs(case):
        return case.axes["trouble"] == "hang"

    outcome = sweep(
        [Troubled], tmp_path, keep=lambda case: not hangs(case), memory_limit_bytes=2**30
    )
    hanging = sweep([Troubled], tmp_path, keep=hangs, timeout_s=2)
    found = by_axis(outcome, "trouble") | by_axis(hanging, "trouble")
    reasons = {trouble: (r.status, r.reason) for trouble, r in found.items()}
    assert reasons.pop("none") == reasons.pop("eager") == ("ok", "")
    assert found["eager"].stages["trace"].programs[0] >= 1
    assert {status for status, _ in reasons.values()} == {"failed"}
    texts = {trouble: reason for trouble, (_, reason) in reasons.items()}
    assert "ValueError: this workload cannot be traced (at bad.py:" in texts["raise"]
    assert texts["abort"] == "killed by SIGABRT"
    assert any("about to abort" in line for line in found["abort"].stderr)
    assert texts["kill"].startswith("killed by SIGKILL (not by the harness")
    assert texts["exit"] == "the process ended with exit code 7 before it was done"
    assert texts["hang"] == "timeout: not done after 2 s, in stage 'trace'"
    assert texts["memory"].startswith("out of memory: the process held 1.")
    assert "expected a pytree of harness.spec" in texts["not_inputs"]
    assert len(outcome.failed + hanging.failed) == 7


@pytest.mark.nightly
def test_what_was_taken_before_a_case_failed_at_its_call_has_its_values(tmp_path):
    outcome = sweep([LookedUp], tmp_path, "3x1")
    sizes = [record.axes["size"] for record in outcome.failed]
    assert sizes == [16, 16], "and is left alone then"
    assert {record.status for record in outcome.failed} == {"failed"}
    (shown,) = (v for k, v in answers(LookedUp, outcome.records)["cases"].items() if "16" in k)
    assert len(shown["trace"]["samples"]) == 2
    assert "no table for 16" in shown["execute"]["fail"]
    frame = harness.load(tmp_path)
    found = frame[frame["size"] == 16].set_index("stage")
    done, failed = found.loc[["trace", "lower", "compile"]], found.loc[["dispatch", "execute"]]
    assert set(done["status"]) == {"ok"}
    assert set(done["reason"]) == {""}
    assert set(done["n_processes"]) == {2}
    assert (done["calibrated"] > 0).all()
    assert (done["hlo_instructions"] > 0).all()
    assert set(failed["status"]) == {"failed"}
    assert (
        failed["reason"].str.contains("KeyError: 'no table for 16' (at bad.py:", regex=False).all()
    )


def test_a_process_that_is_killed_in_a_call_loses_only_calls(tmp_path):
    outcome = sweep([workload("bad", "KilledWhenCalled")], tmp_path)
    by_size = by_axis(outcome, "size")
    assert {size: record.status for size, record in by_size.items()} == {8: "ok", 16: "failed"}
    killed = by_size[16]
    assert killed.reason.startswith("killed by SIGKILL")
    assert set(values_ns(killed.stages)) == set(CASE_STAGES[:3])
    assert all([killed.facts, killed.fingerprint, killed.reference_ns])
    assert "execute" in by_size[8].stages, "another process measured it whole"


def test_a_case_that_fails_twice_is_left_alone_and_its_first_call_not_taken(tmp_path):
    raises = {"keep": lambda case: case.axes["trouble"] == "raise", "first_calls": 1}
    outcome = sweep([Troubled], tmp_path, "4x1", **raises)
    assert len([r for r in outcome.records if r.axes.get("trouble")]) == 2


def test_a_target_that_the_machine_lacks_is_skipped_with_the_reason(tmp_path):
    outcome = sweep([Scale], tmp_path, targets=("tpu",))
    assert {r.status for r in outcome.records} == {"skipped"}
    assert "libtpu" in outcome.records[0].reason or "TPU" in outcome.records[0].reason
    assert outcome.measured == 0


@pytest.mark.nightly
def test_thorough_adds_processes_until_it_is_narrow_or_the_limit_and_says_what_stayed_wide(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sampling, "is_narrow", lambda values: len(values) >= 2)
    outcome = sweep([Scale], tmp_path, sampling.Effort("thorough", 1, 1, limit=5))
    assert outcome.measured == 4
    assert outcome.wide == []
    monkeypatch.setattr(sampling, "is_narrow", lambda values: False)
    outcome = sweep([Scale], tmp_path, sampling.Effort("thorough", 1, 1, limit=3))
    assert (outcome.measured, outcome.reused) == (2, 4)
    assert len(outcome.wide) == 2
    assert "size=8" in outcome.wide[0]


def test_a_results_folder_that_cannot_be_made_stops_before_measuring(tmp_path):
    (tmp_path / "file").write_text("")
    told = []
    with pytest.raises(StoreError, match=r"cannot be written: Not a directory.*--results"):
        sweep([Scale], tmp_path / "file" / "results", on_progress=told.append)
    assert not [one.record for one in told if one.record]


def test_a_full_disk_loses_nothing_that_was_recorded(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        with pytest.raises(
            StoreError, match=r"No space left on device\. Everything recorded before"
        ):
            sweep([Scale], disk, "20x1")
        problems = Problems()
        file = next(disk.glob("*/records/*.jsonl"))
        assert Store(file).read(problems)
        assert not problems
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_an_unreadable_workload_module_fails_all_its_cases_with_the_reason(tmp_path, monkeypatch):
    file = tmp_path / "fickle.py"
    file.write_text(
        "import os\n"
        "from harness import Workload, spec\n"
        "if 'FICKLE' in os.environ: raise RuntimeError('not in this process')\n"
        "class Fickle(Workload):\n"
        "    targets = ('cpu',)\n"
        "    def inputs(self): return spec((4,))\n"
        "    @staticmethod\n"
        "    def function(x): return x\n"
    )
    from harness.workload.location import import_file

    fickle = import_file("fickle", file).Fickle
    monkeypatch.setenv("FICKLE", "1")
    outcome = sweep([fickle], tmp_path / "results", "3x1")
    assert [r.reason for r in outcome.records] == [
        "importing fickle raised RuntimeError: not in this process (at fickle.py:3)"
    ]


@pytest.mark.nightly
def test_the_inside_of_compiles_is_found_out_once_where_it_is_asked_for(tmp_path):
    usual = {"first_calls": 0, "scenarios": ("off", "warm")}
    before = sweep([Scale], tmp_path, **usual)
    assert {record.compile_times for record in before.records} == {None}
    asked = sweep([Scale], tmp_path, inside=True, **usual)
    assert (asked.measured, asked.reused) == (2, 2), "those that compile, anew"
    for record in asked.records:
        compiled = record.workload == "small.Scale" and record.scenario == "off"
        assert (record.compile_times is not None) == compiled
        if compiled:
            assert record.compile_times.reason == ""
            groups = {one.group for one in record.compile_times.groups}
            assert {"optimisation passes", "code generation", "rest"} <= groups
    assert {r.key for r in asked.records} <= {r.key for r in before.records}
    for inside in (True, False):
        assert sweep([Scale], tmp_path, inside=inside, **usual).measured == 0

    frame = harness.compile_times(tmp_path)
    assert set(frame["size"]) == {8, 16}
    ours = frame[frame["size"] == 8]
    whole = ours[ours["pass"] == ""]["threads_s"].sum()
    assert 0 < ours[ours["pass"] != ""]["threads_s"].sum() <= whole * 1.001
    assert ours[ours["pass"] != ""]["count"].min() >= 1
