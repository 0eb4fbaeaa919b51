"""Functions of other people's libraries are measured as they are: solvers, models, training."""

import pytest

from harness import targets
from harness.stages.registry import CASE_STAGES
from harness.workload.discovery import discover
from tests.sweeps import SUITES, sweep

pytestmark = pytest.mark.nightly  # `test_jitted` has objects of the same libraries

WORKLOADS = {
    *("solvers.Tsit5", "solvers.Kvaerno3", "models.LogDensity"),
    *("networks.Mlp", "networks.Descend", "networks.TrainStep"),
    *("objects.Stencil", "objects.Spread"),
}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    workloads = discover(SUITES / "libraries").workloads
    outcome = sweep(workloads, tmp_path_factory.mktemp("libraries"))
    return {r.workload: r for r in outcome.records if r.workload in WORKLOADS}


def test_every_one_is_measured_in_every_stage_that_it_has(records):
    assert set(records) == WORKLOADS
    for name, record in records.items():
        assert (record.status, record.reason) == ("ok", ""), name
        lacking = {stage for stage in CASE_STAGES if not record.stages[stage].samples_ns}
        lacking -= {"in_flight"}  # not taken of calls that a loaded machine makes long
        own = name in ("networks.Mlp", "networks.Descend")  # equinox.filter_jit
        assert lacking == ({"trace"} if own else set()), name
        assert record.facts is not None
    reason = records["networks.Mlp"].stages["trace"].reason
    assert "has no trace step of its own; its lower stage traces as well" in reason


def test_a_record_has_the_names_of_the_values_that_a_case_stands_for(records):
    stencil = records["objects.Stencil"]  # one of its two cases
    assert stencil.axes in [{"size": size, "activation": "tanh"} for size in "SM"]
    assert stencil.facts.output_bytes == 4 * {"S": 8, "M": 16}[stencil.axes["size"]]


def test_what_says_itself_where_its_arguments_are_runs_on_those_devices(records):
    """Its second axis is spread; donated memory is that of one device."""
    facts, devices = records["objects.Spread"].facts, targets.virtual_cpu_devices()
    assert devices > 1
    assert facts.aliased_bytes * devices == 4 * 16 * 4


@pytest.mark.parametrize("stage", ["trace", "lower"])
def test_programs_that_a_solver_builds_while_it_is_traced_or_lowered_are_told(records, stage):
    told = {
        name: record.stages[stage].programs[0]
        for name, record in records.items()
        if record.stages[stage].programs
    }
    if stage == "trace":
        assert set(told) == {"solvers.Tsit5", "solvers.Kvaerno3"}
    else:  # up to jax 0.10
        assert set(told) <= {"solvers.Kvaerno3"}
    for name, count in told.items():
        taken = records[name].stages[stage]
        assert count > 0
        assert 0 < taken.programs_ns[0] < taken.samples_ns[0]


def test_what_a_training_step_donates_is_donated_where_it_is_measured(records):
    """XLA writes the new state over the old: little of the output is memory of its own."""
    facts = records["networks.TrainStep"].facts
    assert facts.aliased_bytes > 0.8 * facts.output_bytes
