"""Scenarios: every label is proven by JAX's events and by the cache directory."""

import json
from pathlib import Path

import pytest

from harness import sweep as measure
from harness.errors import UsageError
from harness.measure.process import MeasuringProcess
from harness.stages.scenarios import registry as scenarios
from tests.sweeps import sweep, workload

Scale = workload("small", "Scale")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Two cases in every scenario, in two passes, where the caller has a cache of their own."""
    every, results = tuple(scenarios.SCENARIOS), tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(results / "mine"))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        outcome = sweep([Scale], results, "1x2", scenarios=every, first_calls=0)
    assert not (results / "mine").exists()
    return outcome


def found(outcome, scenario):
    return [r for r in outcome.records if r.scenario == scenario and r.workload == "small.Scale"]


@pytest.mark.parametrize("scenario", ["cold", "warm", "default"])
def test_every_scenario_has_its_stages(outcome, scenario):
    records = found(outcome, scenario)
    assert len(records) == 2
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


def test_the_caller_s_own_cache_settings_do_not_reach_a_measurement(outcome):
    assert {r.status for r in outcome.records} == {"ok"}
    flags = json.loads(bytes(found(outcome, "default")[0].environment))["flags"]
    assert "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in flags
    for record in outcome.records:  # nor is there the path of a scratch directory
        assert b"JAX_COMPILATION_CACHE_DIR" not in bytes(record.environment)


class Six(workload("first", "Factor")):
    """Six programs whose entries can stand for each other."""

    sweep = {"factor": [2, 3, 4, 5, 6, 7]}


@pytest.mark.nightly
def test_a_warm_sample_that_was_not_answered_by_the_cache_is_refused(tmp_path, monkeypatch):
    # The directory is damaged between the process that fills it and the one that is measured.
    measured = MeasuringProcess.measure

    def tamper(process):
        if process.job.scenario == "warm":
            files = sorted(Path(process.job.cache_folder).glob("jit_function-*-cache"))
            removed, torn, planted, one, other, _ = files
            removed.unlink()
            torn.write_bytes(torn.read_bytes()[:100])
            planted.write_bytes(b"not an executable")
            # JAX counts a hit of an entry that holds another program, and would run it.
            first, second = one.read_bytes(), other.read_bytes()
            one.write_bytes(second)
            other.write_bytes(first)
        return measured(process)

    monkeypatch.setattr(MeasuringProcess, "measure", tamper)
    outcome = sweep([Six], tmp_path, scenarios=("warm",), first_calls=0)
    loads = [r.stages["load"] for r in outcome.records if "factor" in r.axes]
    assert sum(bool(load.samples_ns) for load in loads) == 1
    reasons = sorted(reason for load in loads for reason in load.refused)
    assert [reason.partition(";")[2] for reason in reasons[:3]] == [
        " the label needs 1 compile, 1 hit, 1 request"
    ] * 3
    assert reasons[3:] == ["the cache answered with another program than was put into it"] * 2


@pytest.mark.nightly
def test_a_cold_sample_in_a_filled_directory_is_refused(tmp_path, monkeypatch):
    measured, shared = MeasuringProcess.measure, tmp_path / "shared"
    shared.mkdir()

    def elsewhere(process):
        process.job.cache_folder = str(shared)
        return measured(process)

    monkeypatch.setattr(MeasuringProcess, "measure", elsewhere)
    cold = sweep([Scale], tmp_path, "2x1", scenarios=("cold",), first_calls=0)
    for record in found(cold, "cold"):
        compiled = record.stages["compile"]
        if record.replicate.endswith("#0"):
            assert compiled.samples_ns
        else:
            assert compiled.samples_ns == []
            assert "1 hit" in next(iter(compiled.refused))


def test_an_unknown_scenario_is_refused():
    with pytest.raises(
        UsageError, match=r"No scenario is called 'hot'\. There are: off, cold, warm"
    ):
        measure(Scale, scenarios=("hot",))
