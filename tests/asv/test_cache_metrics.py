"""What asv shows of a workload that is measured with a cold and a warm persistent cache."""

import shutil

import pytest

from harness.frame.load import load
from tests.asv.project import SCALE, Project

METRICS = {
    "load": "seconds",
    "first_call_cold": "seconds",
    "first_call_warm": "seconds",
    "start_cold": "seconds",
    "start_warm": "seconds",
    "entry_bytes": "bytes",
    "relative_warm": "ratio",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    cached = SCALE.replace(
        'targets = ("cpu",)', 'targets = ("cpu",)\n    scenarios = ("off", "cold", "warm")'
    )
    modules = {"cached": cached, "scale": SCALE}
    project = Project(tmp_path_factory.mktemp("cache"), modules)
    project.run("--record-samples", HARNESS_EFFORT="2x1")
    return project


@pytest.mark.parametrize(("metric", "unit"), METRICS.items())
def test_every_metric_has_one_value_per_process_and_its_unit(project, metric, unit):
    found = project.result(f"cached.Scale.track_{metric}")
    (samples,) = found["samples"]
    assert len(samples) == 2
    assert min(samples) > 0
    assert project.benchmarks()[f"cached.Scale.track_{metric}"]["unit"] == unit


def test_relative_warm_is_warm_over_cold_of_the_same_process(project):
    names = ("first_call_warm", "first_call_cold", "relative_warm")
    warm, cold, ratio = (project.result(f"cached.Scale.track_{n}")["samples"][0] for n in names)
    assert ratio == pytest.approx([w / c for w, c in zip(warm, cold, strict=True)])


def test_the_other_stages_are_those_without_a_cache(project):
    found = project.result("cached.Scale.track_compile")
    records = [r for r in project.records("cached.Scale") if r.scenario == "off"]
    assert found["samples"][0] == [r.stages["compile"].samples_ns[0] / 1e9 for r in records]


def test_a_tree_whose_records_are_lost_still_tells_cold_from_warm(project, tmp_path):
    shutil.copytree(project.results, tmp_path / "results")
    shutil.rmtree(tmp_path / "results" / "tested" / "records")
    frame = load(tmp_path / "results")
    frame = frame[frame["workload"] == "cached.Scale"]
    assert set(zip(frame["scenario"], frame["stage"], strict=True)) >= {
        ("off", "compile"),
        ("cold", "first_call"),
        ("warm", "first_call"),
        ("warm", "load"),
    }


def test_a_workload_without_these_scenarios_has_no_such_metrics(project):
    assert not any(
        name.startswith("scale.Scale.track_") and name.rpartition("track_")[2] in METRICS
        for name in project.names()
    )
