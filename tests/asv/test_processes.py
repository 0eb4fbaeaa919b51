"""One workload measured in several processes, and everything that a later run may do with that."""

import statistics
import sys
from pathlib import Path

import psutil
import pytest

from tests.asv.project import SCALE, Project, kill, row, wait_for

SCRIPT = [str(Path(sys.executable).with_name("asv"))]
"""The other way to start asv: by the command that its installation made."""

PROCESSES = 3


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("processes"), {"scale": SCALE})


@pytest.fixture(scope="module")
def measured(project):
    """The results of a run in several processes, on a detached HEAD."""
    project.git("checkout", "--quiet", "--detach")
    project.run("--record-samples", HARNESS_EFFORT=f"{PROCESSES}x2")
    stages = ("trace", "lower", "compile", "dispatch", "execute")
    return {stage: project.result(f"scale.Scale.track_{stage}") for stage in stages}


def test_asv_gets_one_sample_per_process(measured):
    for stage, found in measured.items():
        assert found["stats_repeat"] == [PROCESSES], stage
        assert len(found["samples"][0]) == PROCESSES, stage


def test_the_samples_are_the_values_of_the_records(project, measured):
    for stage, found in measured.items():
        assert found["samples"] == [project.values_s("scale.Scale", stage)], stage
        assert found["result"] == [statistics.median(found["samples"][0])], stage


def test_what_runs_is_valued_by_its_least_sample_and_what_builds_by_its_median(project, measured):
    records = project.records("scale.Scale")
    for stage, statistic in {"execute": min, "compile": statistics.median}.items():
        samples_ns = [record.stages[stage].samples_ns for record in records]
        assert all(len(found) >= 2 for found in samples_ns)
        assert measured[stage]["samples"] == [[statistic(found) / 1e9 for found in samples_ns]]


def test_results_on_a_detached_head_are_filed_under_its_commit(project, measured):
    assert project.git("branch", "--show-current") == ""
    assert {record.commit for record in project.records()} == {project.head}
    assert project.result_file().is_file()


def test_another_run_reuses_the_records_and_measures_what_is_missing(project, measured):
    before = project.records()
    project.run("--record-samples", HARNESS_EFFORT=f"{PROCESSES + 1}x2")
    found = project.result("scale.Scale.track_trace")
    assert found["stats_repeat"] == [PROCESSES + 1]
    assert found["samples"][0][:PROCESSES] == measured["trace"]["samples"][0]
    assert len(project.records("scale.Scale")) == PROCESSES + 1
    assert project.records()[: len(before)] == before


def test_the_command_asv_is_understood_as_well(project, measured):
    project.run("--quick", asv=SCRIPT)
    assert project.records("scale.Scale")[-1].effort == "quick"
    assert project.result("scale.Scale.track_trace")["stats_repeat"] == [1]


def test_fresh_measures_again_and_keeps_what_was(project, measured):
    project.run("--quick")
    before = project.records()
    project.run("--quick", HARNESS_FRESH="1")
    after = project.records()
    assert after[: len(before)] == before
    added = [record for record in after[len(before) :] if record.workload == "scale.Scale"]
    assert [record.effort for record in added] == ["quick"]
    newest = added[0].stages["trace"].samples_ns[0] / 1e9
    assert project.result("scale.Scale.track_trace")["result"] == [newest]


def test_a_dry_run_measures_and_saves_nothing(project, measured):
    files = {file: file.read_bytes() for file in project.results.rglob("*.json*")}
    said = project.run("--quick", "--dry-run", HARNESS_FRESH="1")
    assert "n/a" not in row(said, "scale.Scale.track_compile")
    assert {file: file.read_bytes() for file in project.results.rglob("*.json*")} == files


def test_machine_files_results_and_records_under_that_name(project, measured):
    project.know_machine("tested", "another")
    try:
        project.run("--quick", "--machine", "another")
    finally:
        project.know_machine("tested")
    assert project.result_file(machine="another").is_file()
    (file,) = (project.results / "another" / "records").iterdir()
    assert file.stem == project.result_file().stem
    assert {record.machine for record in project.records()} == {"tested", "another"}


def test_config_names_the_project_whose_results_folder_the_records_go_to(project, measured):
    project.configure("other.conf.json", results_dir="elsewhere")
    before = project.records()
    project.asv(
        *("--config", "other.conf.json", "run", "--quick", "-E", "existing"),
        *("--set-commit-hash", "HEAD"),
    )
    assert project.records() == before
    (file,) = (project.folder / "elsewhere").glob("*/records/*.jsonl")
    assert (file.parents[1] / f"{file.stem}.json").is_file()


def is_recorded(project, workload):
    """Tell whether a record stands in the store, while others may be half written."""
    files = project.results.glob("*/records/*.jsonl")
    lines = [line for file in files for line in file.read_text().splitlines(keepends=True)]
    return any(f'"workload":"{workload}"' in line and line.endswith("\n") for line in lines)


def is_forkserver(process):
    try:
        return "run_server" in process.cmdline()
    except psutil.Error:  # it has just ended
        return False


def test_a_killed_run_loses_no_record_leaves_no_process_and_is_completed_by_the_next(tmp_path):
    project = Project(tmp_path, {"scale": SCALE})
    process = project.start(
        "run", "-E", "existing", "--set-commit-hash", "HEAD", HARNESS_EFFORT=f"{PROCESSES}x1"
    )
    try:
        wait_for(lambda: is_recorded(project, "scale.Scale"))
        children = psutil.Process(process.pid).children(recursive=True)
        servers = list(filter(is_forkserver, children))
    finally:
        kill(process)
    _, alive = psutil.wait_procs(set(children) - set(servers), timeout=20)
    for server in servers:
        server.kill()  # asv's own, idle: nothing tells it that asv is gone
    assert not alive
    before = project.records()
    assert 1 <= len(project.records("scale.Scale")) < PROCESSES
    assert not project.result_file().exists()

    project.run("--record-samples", HARNESS_EFFORT=f"{PROCESSES}x1")
    assert project.records()[: len(before)] == before
    assert len(project.records("scale.Scale")) == PROCESSES
    assert project.result("scale.Scale.track_trace")["stats_repeat"] == [PROCESSES]
