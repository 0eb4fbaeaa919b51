"""Scenarios: every label is proven by JAX's events and by the cache directory."""

import json
from pathlib import Path

import pytest

from harness import sweep as measure
from harness.errors import UsageError
from harness.frame.startup import cache_effectiveness
from harness.stages.scenarios import registry as scenarios
from tests.sweeps import sweep, workload

Scale = workload("small", "Scale")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Two cases in every scenario, in two processes of two passes."""
    every, results = tuple(scenarios.SCENARIOS), tmp_path_factory.mktemp("results")
    return sweep([Scale], results, "2x2", scenarios=every, first_calls=0)


def found(outcome, scenario):
    return [r for r in outcome.records if r.scenario == scenario and r.workload == "small.Scale"]


@pytest.mark.parametrize("scenario", ["cold", "warm", "default"])
def test_every_scenario_has_its_stages_in_every_process(outcome, scenario):
    records = found(outcome, scenario)
    assert len(records) == 4
    for record in records:
        assert record.status == "ok"
        assert list(record.stages) == list(scenarios.stages_of(scenario))
        assert [s.refused for s in record.stages.values()] == [{}] * len(record.stages)


def test_a_small_program_is_not_kept_by_default_and_the_row_says_so(outcome):
    for record in found(outcome, "default"):
        assert len(record.stages["compile"].samples_ns) == 2
        assert record.stages["load"].samples_ns == []
        assert "compiled faster than JAX's threshold of 1 s" in record.stages["load"].reason


def test_the_size_of_the_entry_is_kept_where_one_was_written(outcome):
    assert all(record.entry_bytes > 100 for record in found(outcome, "cold"))
    assert all(record.entry_bytes == 0 for record in found(outcome, "off"))


def test_the_reference_is_measured_without_the_cache_in_every_scenario(outcome):
    references = [r for r in outcome.records if r.workload == "reference"]
    assert {r.scenario for r in references} == set(scenarios.SCENARIOS)
    assert all(r.stages["compile"].samples_ns and r.status == "ok" for r in references)


def test_the_caller_s_own_cache_settings_do_not_reach_a_measurement(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    outcome = sweep([Scale], tmp_path / "results", scenarios=("cold", "default"), first_calls=0)
    assert {r.status for r in outcome.records} == {"ok"}
    assert not (tmp_path / "mine").exists()
    flags = json.loads(bytes(found(outcome, "default")[0].environment))["flags"]
    assert "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in flags


@pytest.mark.parametrize("damage", ["removed", "torn", "planted"])
def test_a_warm_sample_that_was_not_answered_by_the_cache_is_refused(tmp_path, monkeypatch, damage):
    # The directory is damaged between the process that fills it and the one that is measured.
    from harness.engine import execution

    run = execution.run

    def tamper(job, *arguments):
        folder = Path(job.cache_folder)
        if job.scenario == "warm":
            for file in folder.glob("jit_function-*-cache"):
                if damage == "removed":
                    file.unlink()
                elif damage == "torn":
                    file.write_bytes(file.read_bytes()[:100])
                else:
                    file.write_bytes(b"not an executable")
        return run(job, *arguments)

    monkeypatch.setattr(execution, "run", tamper)
    outcome = sweep([Scale], tmp_path, scenarios=("warm",), first_calls=0)
    for record in found(outcome, "warm"):
        assert record.stages["load"].samples_ns == []
        (reason,) = record.stages["load"].refused
        assert "the label needs 1 compile, 1 hit, 1 request" in reason


def test_an_entry_that_holds_another_program_is_noticed(tmp_path, monkeypatch):
    # JAX counts a hit, and would run it.
    from harness.engine import execution

    run = execution.run

    def swap(job, *arguments):
        if job.scenario == "warm":
            one, other = sorted(Path(job.cache_folder).glob("jit_function-*-cache"))
            first, second = one.read_bytes(), other.read_bytes()
            one.write_bytes(second)
            other.write_bytes(first)
        return run(job, *arguments)

    monkeypatch.setattr(execution, "run", swap)
    outcome = sweep([Scale], tmp_path, scenarios=("warm",), first_calls=0)
    for record in found(outcome, "warm"):
        assert record.status in ("ok", "failed")
        load = record.stages.get("load")
        assert not load or load.refused == {
            "the cache answered with another program than was put into it": 1
        }


def test_a_cold_sample_in_a_filled_directory_is_refused(tmp_path, monkeypatch):
    from harness.engine import execution

    run = execution.run
    filled = tmp_path / "filled"
    filled.mkdir()

    def elsewhere(job, *arguments):
        job.cache_folder = str(filled)
        return run(job, *arguments)

    monkeypatch.setattr(execution, "run", elsewhere)
    cold = {"scenarios": ("cold",), "first_calls": 0}
    first = sweep([Scale], tmp_path / "a", **cold)
    second = sweep([Scale], tmp_path / "b", **cold)
    assert all(r.stages["compile"].samples_ns for r in found(first, "cold"))
    for record in found(second, "cold"):
        assert record.stages["compile"].samples_ns == []
        assert "1 hit" in next(iter(record.stages["compile"].refused))


def test_cold_and_warm_stand_side_by_side_in_one_frame():
    frame = measure(Scale, effort="1x1", scenarios=("cold", "warm"))
    table = cache_effectiveness(frame)
    assert list(table["size"]) == [8, 16]
    assert (table["relative_warm"] > 0).all()
    assert (table["entry_bytes"] > 100).all()
    assert table["saved_s"].equals(table["compile_s"] - table["load_s"])


def test_no_record_holds_the_path_of_a_scratch_directory(outcome):
    for record in outcome.records:
        assert b"JAX_COMPILATION_CACHE_DIR" not in bytes(record.environment)


def test_an_unknown_scenario_is_refused():
    with pytest.raises(
        UsageError, match=r"No scenario is called 'hot'\. There are: off, cold, warm"
    ):
        measure(Scale, scenarios=("hot",))
