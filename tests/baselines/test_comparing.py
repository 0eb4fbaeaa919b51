"""Comparisons as a whole: real processes, plans, and what can go wrong in a sweep."""

import json

import msgspec
import pytest

from harness import targets
from harness.baselines.ceilings import Ceilings
from harness.baselines.registry import arms
from harness.measure import process
from harness.measure.context import Options, local_context
from harness.measure.job import Job, JobCase
from harness.measure.plan import Plan
from harness.stages.sampling import effort
from harness.workload.location import Source, locate
from tests.baselines.running import base, compared, run
from tests.sweeps import SUITES, sweep

Gelu = compared("sound", "Gelu")
Product = compared("sound", "Product")
Sound = compared("unsound", "Sound")


def no_ceilings(case):
    return "kind" not in case.axes


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """One process per side, measured once for several tests."""
    results = tmp_path_factory.mktemp("compared")
    return results, sweep([Gelu], results, with_baselines=True, keep=no_ceilings)


def sides(outcome):
    found = [record for record in outcome.records if record.comparison]
    return {(r.comparison.backend, r.comparison.threads): r for r in found}


def test_every_side_is_measured_with_one_thread_and_with_all(swept):
    found = sides(swept[1])
    assert list(found) == [
        (backend, threads) for threads in ("one", "all") for backend in ("xla", "numpy", "fused")
    ]
    for record in found.values():
        assert (record.status, record.comparison.error < 1e-6) == ("ok", True), record.reason
        assert record.stages["latency"].samples_ns
        assert set(record.reference_ns) == {"loop"}
        assert record.comparison.versions
        assert record.comparison.argument_bytes == record.comparison.output_bytes == 4096
        assert record.comparison.cpu_per_wall > 0
        assert record.scenario == "off"
    assert len({record.key for record in found.values()}) == 6


def test_xlas_side_holds_its_stages_and_its_program_and_the_others_their_first_call(swept):
    found = sides(swept[1])
    xla, numpy = found["xla", "one"], found["numpy", "one"]
    assert {"trace", "lower", "compile", "load"} < set(xla.stages)
    assert all(len(xla.stages[stage].samples_ns) == 1 for stage in ("trace", "compile", "load"))
    assert xla.fingerprint
    assert xla.facts is not None
    assert set(numpy.stages) == {"first_call", "latency", "dispatch", "slope"}
    assert numpy.facts is None
    assert numpy.comparison.operations == 8
    assert "numexpr" in found["fused", "one"].comparison.versions


def test_the_ordinary_records_of_a_sweep_with_baselines_are_the_same_as_without(swept):
    ordinary = [r for r in swept[1].records if not r.comparison and r.workload == "sound.Gelu"]
    assert [list(r.stages) for r in ordinary] == [
        ["trace", "lower", "compile", "dispatch", "execute", "compute", "in_flight"]
    ]


def test_the_process_had_the_variables_of_its_threads(swept):
    for (_, threads), record in sides(swept[1]).items():
        flags = json.loads(bytes(record.environment))["flags"]
        assert flags.get("NPROC") == ("1" if threads == "one" else None)
        assert flags["JAX_ENABLE_COMPILATION_CACHE"] == "0"


def test_a_comparison_is_resumed(swept):
    again = sweep([Gelu], swept[0], with_baselines=True, keep=no_ceilings)
    assert (again.measured, again.reused) == (0, 7)


def test_a_precision_that_the_cpu_does_not_have_is_skipped_by_the_first_process(tmp_path):
    def keep(case):
        return case.precision == "tf32" and case.axes["dtype"] == "float32"

    outcome = sweep([Product], tmp_path, "2x1", keep=keep)
    (record,) = [r for r in outcome.records if r.workload == "sound.Product"]
    compared_to = run(Product, "numpy", keep=keep)
    for found in (record, *compared_to):
        assert (found.status, found.precision) == ("skipped", "tf32")
        assert found.reason == "XLA:CPU multiplies float32 in IEEE whatever is asked for"


def test_numpy_is_no_baseline_for_bfloat16():
    one, other = run(Product, "numpy", keep=lambda case: case.axes["dtype"] == "bfloat16")
    assert one.status == other.status == "skipped"
    assert "NumPy rounds sums of bfloat16 after every step" in one.reason + other.reason


@pytest.mark.nightly
def test_static_axes_pytrees_and_integer_outputs_reach_the_baseline():
    def keep(case):
        return case.axes["dtype"] == "float32" and case.precision == "ieee"

    for backend in ("xla", "numpy"):
        (record,) = run(Product, backend, keep=keep)
        assert record.comparison.comparable, record.comparison.reasons
        assert record.comparison.dtypes == ["int32", "float32"]
        assert record.precision == "ieee"


# Plans


CUPY = {"cupy-eager", "cupy-fused", "cupy-graph"}


def plan(workloads, tmp_path, with_baselines=True, **options):
    context = local_context(tmp_path, SUITES, "tested")
    return Plan(
        workloads, context, Options(effort("1x1"), with_baselines=with_baselines, **options)
    )


def test_sides_that_are_held_against_each_other_follow_each_other(tmp_path):
    def names(workload, *backends):
        sides = [f"/{each},{threads}" for threads in ("one", "all") for each in backends]
        return [f"{workload}@cpu{side}" for side in sides]

    found = [group.name for group in plan([Gelu, Sound], tmp_path).groups]
    assert found[:12] == [
        *("sound.Gelu@cpu", *names("sound.Gelu", "xla", "numpy", "fused")),
        *("unsound.Sound@cpu", *names("unsound.Sound", "xla", "numpy")),
    ]
    assert all("Ceilings@cpu/" in name for name in found[12:])


def test_the_ceilings_are_compared_and_never_measured_by_themselves(tmp_path):
    groups = plan([Gelu], tmp_path).groups
    assert {group.backend for group in groups if group.workload is Ceilings} == {"xla", "numpy"}
    assert plan([compared("unsound", "Pair")], tmp_path, keep=lambda case: False).groups == []
    (usual,) = plan([Gelu], tmp_path, with_baselines=False).groups
    assert usual.backend == ""


def test_on_a_gpu_each_precision_and_each_state_of_the_kernel_cache_has_its_process():
    found = list(arms(Product, targets.find("gpu")))
    assert [arm for arm in found if arm.backend == "xla"] == [("xla", "all", "off", "")]
    assert [arm[2:] for arm in found if arm.backend == "cupy-eager"] == [
        ("cold", "ieee"),
        ("warm", "ieee"),
        ("cold", "tf32"),
        ("warm", "tf32"),
    ]
    assert {arm.backend for arm in arms(Gelu, targets.find("gpu"))} == {"xla", *CUPY}
    assert list(arms(Gelu, targets.find("tpu"))) == []


def test_a_gpu_that_is_not_there_is_skipped_with_the_reason(tmp_path):
    if not targets.find("gpu").lacking():
        pytest.skip("there is one")
    skipped = plan([Gelu], tmp_path, targets=("gpu",)).skipped
    assert {group.backend for group, *_ in skipped} == {"", "xla", *CUPY}


def cupys(**fields):
    """A job of CuPy's side."""
    about = {"target": "gpu", "platforms": "cpu", "scenario": "cold", "threads": "all"}
    return Job(**{"backend": "cupy-eager", **about, **fields})


def test_the_callers_variables_do_not_reach_a_comparison(monkeypatch):
    for name in ("NPROC", "CUPY_TF32", "NVIDIA_TF32_OVERRIDE", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.setenv(name, "theirs")
    own = {"CUPY_TF32": "1", "CUPY_CACHE_DIR": "/scratch"}
    job = cupys(source=Source("", ""), cases=[], cache_folder="/scratch", environment=own)
    found = process.variables(job)
    assert own.items() <= found.items()
    assert not {"NPROC", "NVIDIA_TF32_OVERRIDE", "JAX_COMPILATION_CACHE_DIR"} & set(found)
    assert found["JAX_ENABLE_COMPILATION_CACHE"] == "0"


class Kept:
    """Listens to a process, and keeps its records."""

    def __init__(self):
        self.records = []

    def keep(self, record, ref, hopeless=False):
        self.records.append(record)

    def tell(self, case, stage, ref=None):
        pass

    def check(self):
        pass


@pytest.mark.nightly
def test_a_process_whose_side_is_not_to_be_had_says_so_for_every_case(tmp_path):
    if not targets.find("gpu").lacking():
        pytest.skip("there is a GPU")
    job = cupys(
        source=locate(Gelu),
        cases=[JobCase(0, "size=1024, transform='forward', target='gpu'", "key")],
        timeout_s=60,
        base=base("gpu"),
    )
    kept = Kept()
    assert process.MeasuringProcess(job, kept, None, job.cases, str(tmp_path)).measure() == []
    (record,) = kept.records
    assert (record.status, record.comparison.backend) == ("skipped", "cupy-eager")
    assert "CuPy" in record.reason or "CUDA" in record.reason
    assert str(tmp_path) not in bytes(record.environment).decode()
    of_jax = msgspec.structs.replace(job, backend="xla", platforms="tpu")
    process.MeasuringProcess(of_jax, kept, None, job.cases).measure()
    assert kept.records[1].reason.startswith("JAX found no gpu device: ")
