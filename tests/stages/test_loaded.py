"""Scenarios that load what another process has exported or compiled: proven, or refused."""

import dataclasses
import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from harness.jaxhooks.evidence import Evidence
from harness.measure.process import MeasuringProcess
from harness.records.schema import FIRST_CALL
from harness.stages import artefact
from harness.stages.build import Build
from harness.stages.passes import Pass
from harness.stages.prepared import prepare
from harness.stages.registry import STAGES
from harness.stages.scenarios import executable
from harness.stages.scenarios.registry import SCENARIOS, inapplicable
from harness.stages.scenarios.scenario import Artefact
from harness.targets import find
from harness.workload.workload import Case
from tests.sweeps import sweep, workload

Plain = workload("loaded", "Plain")
BOTH = ("exported", "executable")


def records(outcome):
    """Records of cases, by workload, transform, scenario, and whether they are of first calls."""
    return {
        (r.workload.rpartition(".")[2], r.transform, r.scenario, r.protocol == FIRST_CALL): r
        for r in outcome.records
        if r.workload.startswith("loaded.")
    }


def reason(outcome, scenario, stage="first_call"):
    """The one reason for which a stage of `Plain` was refused."""
    record = records(outcome)["Plain", "forward", scenario, stage == "first_call"]
    assert record.status == "refused"
    ((reason, count),) = record.stages[stage].refused.items()
    assert count == 1
    return reason


def tampered(monkeypatch, change):
    """Have a function change each artefact between the process that makes it and the others."""
    measure = MeasuringProcess.measure

    def tamper(process):
        if not process.job.fills:
            for header in Path(process.job.cache_folder).glob("*.json"):
                change(header)
        return measure(process)

    monkeypatch.setattr(MeasuringProcess, "measure", tamper)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A function in every scenario; the jobs of the processes."""
    jobs, measure = [], MeasuringProcess.measure
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MeasuringProcess, "measure", lambda p: jobs.append(p.job) or measure(p))
        results = tmp_path_factory.mktemp("plain")
        chosen = [Plain]
        return sweep(chosen, results, scenarios=("off", *BOTH), first_calls=1), jobs


def test_what_is_exported_is_traced_lowered_and_compiled_and_an_executable_is_only_loaded(plain):
    found = records(plain[0])
    stages = {
        (scenario, alone): list(found["Plain", "forward", scenario, alone].stages)
        for scenario in BOTH
        for alone in (False, True)
    }
    assert stages == {
        ("exported", False): ["trace", "lower", "compile"],
        ("exported", True): ["first_call", "start"],
        ("executable", False): ["load"],
        ("executable", True): ["first_call", "start"],
    }
    for record in found.values():
        assert record.status == "ok"
        assert all(one.samples_ns and not one.refused for one in record.stages.values())


def test_another_process_makes_what_is_loaded_with_the_cache_off(plain):
    outcome, jobs = plain
    own = [(job.scenario, job.first_call, job.fills) for job in jobs if job.scenario in BOTH]
    for scenario in BOTH:
        turns = [fills for name, _, fills in own if name == scenario]
        assert turns == [True, False] * 2
    for record in records(outcome).values():
        flags = json.loads(bytes(record.environment))["flags"]
        assert flags["JAX_ENABLE_COMPILATION_CACHE"] == "0"


def test_the_executable_is_the_program_that_was_compiled(plain):
    found = records(plain[0])
    programs = {
        found["Plain", "forward", scenario, alone].fingerprint
        for scenario in ("off", "executable")
        for alone in (False, True)
    }
    assert len(programs) == 1


OTHERS = {
    "release": ("release", "jax 0.9.0 with jaxlib 0.9.0", "the artefact is of another release: "),
    "device": ("device", "TPU v5e (tpu)", "the artefact is of another device: made with TPU v5e"),
    "features": ("features", ["avx1024"], "the artefact is of another processor: only one of both"),
    "damaged header": ("release", 7, "the header of the artefact is damaged: "),
}


@pytest.mark.parametrize(
    "what",
    ["release", *(pytest.param(one, marks=pytest.mark.nightly) for one in list(OTHERS)[1:])],
)
def test_an_artefact_of_elsewhere_is_refused(what, tmp_path, monkeypatch):
    field, value, expected = OTHERS[what]

    def change(header):
        header.write_text(json.dumps({**json.loads(header.read_text()), field: value}))

    tampered(monkeypatch, change)
    outcome = sweep([Plain], tmp_path, scenarios=BOTH, first_calls=1)
    for scenario, stage in (("exported", "compile"), ("executable", "load")):
        assert reason(outcome, scenario).startswith(expected)
        assert reason(outcome, scenario, stage).startswith(expected)


@pytest.mark.nightly
def test_a_damaged_artefact_and_one_that_is_not_there_are_refused(tmp_path, monkeypatch):
    def change(header):
        file = header.with_suffix("")
        stored = file.read_bytes()
        file.write_bytes(stored[:-1] + bytes([stored[-1] ^ 1]))

    tampered(monkeypatch, change)
    chosen = [Plain]
    outcome = sweep(chosen, tmp_path / "damaged", scenarios=("executable",), first_calls=1)
    assert reason(outcome, "executable") == artefact.DAMAGED
    tampered(monkeypatch, lambda header: header.unlink())
    outcome = sweep(chosen, tmp_path / "gone", scenarios=("executable",), first_calls=1)
    assert reason(outcome, "executable", "load") == artefact.NONE


@pytest.mark.parametrize("scenario", BOTH)
def test_what_builds_more_than_its_label_says_is_refused(scenario, tmp_path):
    state, prepared = SCENARIOS[scenario], prepare(Plain, Case(target="cpu"))
    file = artefact.path(tmp_path, prepared.case.id)
    artefact.make(Build.of(prepared), state.artefact, file)

    def load(stored, call):
        loaded = state.artefact.load(stored, call)
        return lambda x: jax.jit(jnp.cos)(loaded(x))  # one program more

    spoilt = dataclasses.replace(state, artefact=Artefact(state.artefact.make, load))
    proof = Evidence()
    run = Pass(prepared, proof, spoilt, tmp_path, lambda stage: None)
    for stage in ("first_call", "start"):
        run.take(STAGES[stage])
    proof.close()
    assert not run.samples_ns
    assert "2 compile" in run.refused["start"] or "1 compile" in run.refused["start"]
    assert run.differs() == artefact.OTHER_RESULT


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """What cannot be stored, what is stored and not equal, and what is called in its own way."""
    chosen = [workload("loaded", name) for name in ("Calling", "Drawn", "Own")]
    results = tmp_path_factory.mktemp("mixed")
    return records(sweep(chosen, results, scenarios=BOTH, first_calls=1))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        ("exported", "NotImplementedError: serialization of host_callbacks is not yet implemented"),
        ("executable", artefact.CALLS_BACK),
    ],
)
def test_what_cannot_be_stored_is_refused_with_the_reason(mixed, scenario, why):
    for alone in (False, True):
        record = mixed["Calling", "forward", scenario, alone]
        assert (record.status, record.reason) == ("refused", f"no artefact can be made: {why}")


@pytest.mark.parametrize("scenario", BOTH)
def test_a_result_that_is_not_the_function_s_own_is_refused(mixed, scenario):
    record = mixed["Drawn", "forward", scenario, True]
    assert (record.status, record.reason) == ("refused", artefact.OTHER_RESULT)


@pytest.mark.parametrize("scenario", BOTH)
def test_the_user_s_own_object_is_called_without_its_static_arguments(mixed, scenario):
    assert [mixed["Own", "forward", scenario, alone].status for alone in (False, True)] == [
        "ok"
    ] * 2


@pytest.mark.nightly
def test_two_devices_and_lapack(tmp_path):
    chosen = [workload("loaded", name) for name in ("Several", "Lapack")]
    outcome = sweep(chosen, tmp_path, scenarios=BOTH, first_calls=1)
    for (name, transform, scenario, _), record in records(outcome).items():
        refused = transform == "pmap" or name == "Lapack"
        assert record.status == ("refused" if refused else "ok"), (name, transform, scenario)
        if transform == "pmap":
            assert record.reason.endswith(artefact.NOT_JIT)
        elif refused and scenario == "executable":
            assert record.reason.endswith(executable.LAPACK)
        elif refused:
            assert "Cannot serialize PyTreeDef containing an unregistered type" in record.reason


def test_a_device_that_is_not_here_loads_nothing():
    target = find("gpu:h200")
    assert inapplicable("executable", target) == (
        "gpu:h200 is compiled for without a device, and only a device can load for it"
    )


def test_a_missing_flatbuffers_is_named_with_what_to_install(tmp_path, monkeypatch):
    prepared = prepare(Plain, Case(target="cpu"))
    file = artefact.path(tmp_path, prepared.case.id)
    for name in [name for name in sys.modules if name.startswith("jax._src.export.serialization")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    artefact.make(Build.of(prepared), SCENARIOS["exported"].artefact, file)
    reason = json.loads(file.with_suffix(".json").read_text())["reason"]
    assert reason.endswith("pip install 'jax-harness[export]'")
