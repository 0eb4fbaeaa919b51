"""Workloads measured in several processes, and everything that a later run may do with that."""

import re
import shutil
import statistics
import sys
from pathlib import Path

import psutil
import pytest

from harness.frame.load import everything
from harness.records.schema import Problems, read_file
from harness.stages.registry import values_ns
from tests import forks
from tests.asv.project import MACHINE, SCALE, Project, kill, row, wait_for

SCRIPT = [str(Path(sys.executable).with_name("asv"))]
"""The other way to start asv: by the command that its installation made."""

PROCESSES = 2

CACHED = SCALE.replace(
    'targets = ("cpu",)', 'targets = ("cpu",)\n    scenarios = ("off", "cold", "warm")'
)
CACHE_METRICS = {
    **dict.fromkeys(("load", "first_call_cold", "first_call_warm"), "seconds"),
    **{"start_cold": "seconds", "start_warm": "seconds", "entry_bytes": "bytes"},
    "relative_warm": "ratio",
}

STAGES = ("trace", "lower", "compile", "dispatch", "execute")
ONLY_SCALE = ("-b", rf"^scale\..*track_({'|'.join(STAGES)})\b")
"""Stages alone: each reader is a process of its own."""
ONLY_TRACE = ("-b", r"^scale\..*track_trace\b")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project, on a detached HEAD."""
    project = Project(tmp_path_factory.mktemp("processes"), {"scale": SCALE, "cached": CACHED})
    project.git("checkout", "--quiet", "--detach")
    return project


@pytest.fixture(scope="module")
def measured(project):
    """The results of a run in several processes."""
    project.run("--record-samples", *ONLY_SCALE, HARNESS_EFFORT=f"{PROCESSES}x2")
    return {stage: project.result(f"scale.Scale.track_{stage}") for stage in STAGES}


@pytest.fixture(scope="module")
def cached(project, measured):
    """What asv shows of a workload that is measured with a cold and a warm persistent cache."""
    shown = rf"^cached\..*track_({'|'.join(CACHE_METRICS)}|compile)\b"
    project.run("--record-samples", "-b", shown, HARNESS_EFFORT="2x1")
    return {name: project.result(f"cached.Scale.track_{name}") for name in CACHE_METRICS}


def test_every_metric_of_the_cache_has_one_value_per_process_and_its_unit(project, cached):
    known = project.benchmarks()
    for metric, unit in CACHE_METRICS.items():
        (samples,) = cached[metric]["samples"]
        assert len(samples) == 2
        assert min(samples) > 0
        assert known[f"cached.Scale.track_{metric}"]["unit"] == unit
    names = ("first_call_warm", "first_call_cold", "relative_warm")
    warm, cold, ratio = (cached[name]["samples"][0] for name in names)
    assert ratio == pytest.approx([w / c for w, c in zip(warm, cold, strict=True)])
    shown = project.result("cached.Scale.track_compile")
    records = [r for r in project.records("cached.Scale") if r.scenario == "off"]
    assert shown["samples"][0] == [r.stages["compile"].samples_ns[0] / 1e9 for r in records]
    # A workload without these scenarios has no such metrics.
    assert not {f"scale.Scale.track_{name}" for name in CACHE_METRICS} & set(known)


def test_a_tree_whose_records_are_lost_still_tells_cold_from_warm(project, cached, tmp_path):
    shutil.copytree(project.results, tmp_path / "results")
    shutil.rmtree(tmp_path / "results" / MACHINE / "records")
    frame = everything(tmp_path / "results")
    frame = frame[frame["workload"] == "cached.Scale"]
    assert set(zip(frame["scenario"], frame["stage"], strict=True)) >= {
        ("off", "compile"),
        ("cold", "first_call"),
        ("warm", "first_call"),
        ("warm", "load"),
    }


def test_asv_gets_one_sample_per_process_the_value_of_its_record(project, measured):
    for stage, found in measured.items():
        assert found["stats_repeat"] == [len(found["samples"][0])] == [PROCESSES], stage
        assert found["samples"] == [project.values_s("scale.Scale", stage)], stage
        assert found["result"] == [statistics.median(found["samples"][0])], stage
    assert project.git("branch", "--show-current") == ""
    assert {record.commit for record in project.records()} == {project.head}
    assert project.result_file().is_file()


def test_what_runs_is_valued_by_its_least_sample_and_what_builds_by_its_median(project, measured):
    records = project.records("scale.Scale")
    for stage, statistic in {"execute": min, "compile": statistics.median}.items():
        samples_ns = [record.stages[stage].samples_ns for record in records]
        assert all(len(found) >= 2 for found in samples_ns)
        assert measured[stage]["samples"] == [[statistic(found) / 1e9 for found in samples_ns]]


@pytest.mark.nightly
def test_what_asv_was_given_is_measured_anew_by_another_run_and_stays(project, measured):
    before = project.records()
    # The command asv is understood as well as `python -m asv`.
    project.run("--record-samples", *ONLY_TRACE, asv=SCRIPT, HARNESS_EFFORT="1x1")
    found = project.result("scale.Scale.track_trace")
    assert found["stats_repeat"] == [1]
    assert not set(found["samples"][0]) & set(measured["trace"]["samples"][0])
    after = project.records()
    assert after[: len(before)] == before
    (added,) = (one for one in after[len(before) :] if one.workload == "scale.Scale")
    assert (added.effort, found["result"]) == ("1x1", [values_ns(added.stages)["trace"] / 1e9])


@pytest.mark.nightly
def test_append_samples_adds_new_processes_to_those_before(project, measured):
    before = project.result("scale.Scale.track_trace")["samples"][0]
    project.run("--append-samples", *ONLY_TRACE, HARNESS_EFFORT="2x1")
    after = project.result("scale.Scale.track_trace")["samples"][0]
    assert after[: len(before)] == before
    assert len(set(after)) == len(before) + 2


def test_a_dry_run_measures_and_saves_nothing(project, measured):
    files = {file: file.read_bytes() for file in project.results.rglob("*.json*")}
    said = project.run("--quick", "--dry-run", *ONLY_TRACE, HARNESS_FRESH="1")
    assert "n/a" not in row(said, "scale.Scale.track_trace")
    assert {file: file.read_bytes() for file in project.results.rglob("*.json*")} == files


@pytest.mark.nightly
def test_config_and_machine_name_where_results_and_records_go_and_under_which_name(
    project, measured
):
    project.configure("other.conf.json", results_dir="elsewhere")
    project.know_machine(MACHINE, "another")
    before = project.records()
    words = ("--quick", "-E", "existing", "--set-commit-hash", "HEAD", "--machine", "another")
    project.asv("--config", "other.conf.json", "run", *words, *ONLY_TRACE)
    project.know_machine(MACHINE)
    assert project.records() == before
    (file,) = (project.folder / "elsewhere").glob("*/records/*.jsonl")
    assert (file.parents[1].name, file.stem) == ("another", project.result_file().stem)
    assert (file.parents[1] / f"{file.stem}.json").is_file()
    assert {record.machine for record in read_file(file, Problems())} == {"another"}


@pytest.mark.nightly
def test_a_killed_run_loses_no_record_leaves_no_process_and_is_completed_by_the_next(
    tmp_path, monkeypatch
):
    project = Project(tmp_path, {"scale": SCALE})
    recorded = re.compile(r'"workload":"scale\.Scale".*\n')
    with monkeypatch.context() as its:
        its.delenv(forks.ADDRESS)  # all are its descendants, with their own command lines
        run = ("run", "-E", "existing", "--set-commit-hash", "HEAD", *ONLY_TRACE)
        process = project.start(*run, HARNESS_EFFORT="3x1")
        try:
            files = project.results / MACHINE / "records"
            wait_for(lambda: any(recorded.search(one.read_text()) for one in files.glob("*")))
            children = psutil.Process(process.pid).children(recursive=True)
            assert any("run_server" in child.cmdline() for child in children)
        finally:
            kill(process)
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive
    before = project.records()
    assert 1 <= len(project.records("scale.Scale")) < 3
    assert not project.result_file().exists()

    project.run("--record-samples", *ONLY_TRACE, HARNESS_EFFORT="3x1")
    assert project.records()[: len(before)] == before
    assert len(project.records("scale.Scale")) == 3
    assert project.result("scale.Scale.track_trace")["stats_repeat"] == [3]
