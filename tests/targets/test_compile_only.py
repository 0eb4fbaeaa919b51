"""Compiling for devices that are not here: the real compilers, in real measuring processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import jax
import pytest
from asv_runner.benchmarks.mark import SkipNotImplemented

from harness import targets
from harness.asv import suite
from harness.asv.metrics import answers as answers_of
from harness.frame.load import frame_of
from harness.ir import build
from harness.measure.context import Options, local_context
from harness.measure.plan import Plan
from harness.stages import sampling
from harness.targets import topologies
from harness.workload import location
from harness.workload.discovery import discover
from harness.workload.workload import Case
from tests.sweeps import SUITES, sweep, workload

Kinds, Updated = (
    getattr(location.import_file("placed.kinds", SUITES / "placed" / "kinds.py"), name)
    for name in ("Kinds", "Updated")
)
Scale = workload("small", "Scale")

DATA = Path(targets.__file__).parent / "data"
ROOT = Path(targets.__file__).parents[2]


def needs(name):
    lacking = targets.find(name).lacking()
    return pytest.mark.skipif(bool(lacking), reason=f"{name}: {lacking}")


BOTH = [pytest.param(name, marks=needs(name)) for name in ("gpu:h200", "tpu:v5e")]
DEVICES = {"gpu:h200": "NVIDIA H200 (compile-only)", "tpu:v5e": "TPU v5 lite (compile-only)"}

HOLD = """
import sys
from harness import targets; from harness.targets import topologies
target = targets.find("tpu:v5e")
try:
    topologies.describe(target.name, target.description)
except topologies.Unusable as error:
    print(error)  # somebody else holds the lock: as good
print("held", flush=True)
sys.stdin.read()
"""


def holding():
    """Start who takes libtpu's lock, or says why not."""
    variables = {**os.environ, "JAX_PLATFORMS": "cpu", **targets.find("tpu:v5e").environment}
    del variables["ALLOW_MULTIPLE_LIBTPU_LOAD"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", HOLD], env=variables, text=True, **pipes)


@pytest.fixture(scope="module")
def held():
    """libtpu's lock in the hands of another process."""
    with holding() as holder:
        assert any(line == "held\n" for line in holder.stdout)
        yield
        holder.kill()


@pytest.fixture(scope="module", params=BOTH)
def measured(tmp_path_factory, request):
    """A target, and the workload `Kinds` on it, measured once for several tests."""
    if request.param == "tpu:v5e":
        request.getfixturevalue("held")
    results = tmp_path_factory.mktemp("kinds")
    return request.param, sweep([Kinds], results, targets=(request.param,))


def cases(outcome, transform="forward", scenario="off"):
    return {
        r.axes["kind"]: r
        for r in outcome.records
        if r.workload == "kinds.Kinds"
        and (r.transform, r.scenario) == (transform, scenario)
        and r.reason != "one kind is enough"
    }


def test_what_a_program_is_made_of_does_not_matter_and_nothing_is_run(measured):
    target, outcome = measured
    found = cases(outcome)
    assert {kind for kind, record in found.items() if record.status == "ok"} == {
        *("spec", "array", "struct", "key", "closure", "tree", "none"),
    }
    for kind in ("spec", "none"):
        for stage in ("trace", "lower", "compile"):
            assert found[kind].stages[stage].samples_ns
    for stage in ("dispatch", "execute", "in_flight"):
        samples = found["spec"].stages[stage]
        assert samples.samples_ns == []
        assert samples.reason == f"{target} is compiled for, not run: no such device here"
    (record,) = cases(outcome, "sharded").values()
    assert record.status == "ok"
    assert record.fingerprint != found["spec"].fingerprint


def test_what_cannot_be_had_for_a_device_that_is_not_there_says_why(measured):
    target, outcome = measured
    record = cases(outcome)["unused"]
    assert record.status == "refused"
    said = f"it was compiled for cpu and not for {target}: its function uses none of its inputs"
    assert said in record.reason
    (record,) = cases(outcome, "pmap").values()
    assert (record.status, record.reason) == (
        "skipped",
        f"jax.pmap compiles for devices that are there, and there is no {target} here",
    )
    for record in cases(outcome, scenario="cold").values():
        assert record.status == "skipped"
        assert "only the scenario 'off' can be measured" in record.reason


def test_records_name_the_device_that_is_not_there(measured):
    target, outcome = measured
    for record in outcome.records:
        if record.status == "ok":
            environment = json.loads(bytes(record.environment))
            assert environment["device"] == DEVICES[target]
            assert environment["devices"] == targets.find(target).devices
            assert record.target == target


def test_the_process_and_the_reference_are_measured_there_as_well(measured):
    found = {r.workload: r for r in measured[1].records}
    assert found["process"].stages["first_compile"].samples_ns
    assert found["process"].stages["backend"].samples_ns
    assert found["reference"].stages["compile"].samples_ns
    assert cases(measured[1])["spec"].reference_ns["compile"] > 0


def test_asv_and_the_frame_show_what_there_is(measured):
    target, outcome = measured
    answers = answers_of(Kinds, outcome.records)
    params = ("spec", "forward", target)
    assert len(suite.look_up(Kinds, answers, "compile", params)["samples"]) == 1
    with pytest.raises(SkipNotImplemented, match=f"{target} is compiled for, not run"):
        suite.look_up(Kinds, answers, "execute", params)
    frame = frame_of(outcome.records)
    rows = frame[
        (frame["kind"] == "spec") & (frame["transform"] == "forward") & (frame["scenario"] == "off")
    ]
    status = dict(zip(rows.stage, rows.status, strict=True))
    assert set(rows.target) == {target}
    assert (status["compile"], status["execute"]) == ("ok", "skipped")


@pytest.mark.nightly
@needs("tpu:v5e")
def test_without_the_variable_a_second_libtpu_is_refused(held):
    said, _ = holding().communicate("")
    assert re.search("nothing can be compiled for tpu:v5e: .*lockfile", said)


@pytest.mark.nightly
@needs("gpu:h200")
def test_a_file_gives_the_target_its_name_and_no_record_its_path(tmp_path):
    file = tmp_path / "mine.pbtxt"
    file.write_text((DATA / "h200.pbtxt").read_text().replace("NVIDIA H200", "My GPU"))
    outcome = sweep([Updated], tmp_path / "results", targets=(f"gpu:{file}", "cpu"))
    own = [r for r in outcome.records if r.workload == "kinds.Updated"]
    assert sorted((r.target, r.transform, r.status) for r in own) == [
        ("gpu:mine", "forward", "ok"),
        ("gpu:mine", "gradient", "ok"),
    ]
    assert json.loads(bytes(own[0].environment))["device"] == "My GPU (compile-only)"
    (store,) = (tmp_path / "results").rglob("*.jsonl")
    assert str(tmp_path) not in store.read_text()


@needs("gpu:h200")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("gpu_device_info {", "gpu_device_info ["), "Failed to parse GpuTargetConfigProto"),
        (('device_description_str: "NVIDIA H200"', ""), "has no device_description_str"),
        (
            ("capability { major: 9 }", "capability { major: 0 }"),
            "nothing can be compiled for gpu:broken: .*Error",
        ),
    ],
)
def test_a_broken_description_fails_with_the_compilers_reason(tmp_path, change, said):
    file = tmp_path / "broken.pbtxt"
    file.write_text((DATA / "h200.pbtxt").read_text().replace(*change))
    outcome = sweep([Updated], tmp_path / "results", effort="3x1", targets=(f"gpu:{file}",))
    assert {r.status for r in outcome.records} == {"failed"}
    for record in outcome.records:
        assert re.search(said, record.reason)
        assert len(record.reason) < topologies.REASON_LENGTH + 100
        assert record.replicate.endswith("#0"), "another process could not measure it either"


def planned(tmp_path, *asked, **options):
    context = local_context(tmp_path, SUITES, "tested")
    return Plan([Updated], context, Options(sampling.effort("1x1"), targets=asked, **options))


def test_the_key_changes_with_the_description(tmp_path):
    file = tmp_path / "mine.pbtxt"

    def keys(text):
        file.write_text(text)
        plan = planned(tmp_path, f"gpu:{file}")
        refs = [ref for group in plan.groups for ref in group.refs]
        refs += [ref for _, ref, _ in plan.skipped]  # where the compiler is not installed
        return {ref.key for ref in refs}

    text = (DATA / "h200.pbtxt").read_text()
    assert len(keys(text)) == 2
    assert keys(text) == keys(text)
    assert not keys(text) & keys(text.replace("132", "144"))


def test_a_lacking_compiler_skips_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "harness.targets.described_gpu.installed", lambda name: "1" if name == "jaxlib" else ""
    )
    plan = planned(tmp_path, "gpu:h200")
    assert plan.groups == []
    assert {reason for _, _, reason in plan.skipped} == {
        "jax-cuda13-pjrt is not installed (extra 'targets')"
    }


def test_a_family_stands_for_its_compile_only_targets_where_they_are_asked_for(tmp_path):
    def wanted(*asked):
        plan = planned(tmp_path, *asked)
        groups = [*plan.groups, *(group for group, _, _ in plan.skipped)]
        return {group.target for group in groups}

    assert wanted("gpu:h200", "tpu:v5e", "cpu") == {"gpu:h200"}
    assert len(planned(tmp_path, "gpu:h200", "gpu:h200").groups) <= 1


HIDDEN = """
for tool in $(command -v ptxas nvcc) /usr/local/cuda*; do
  if [ -d "$tool" ]; then mount -t tmpfs none "$(realpath "$tool")" || exit 77
  else mount --bind /dev/null "$(realpath "$tool")" || exit 77; fi
done
if command -v ptxas || ls /usr/local/cuda*/bin/ptxas || [ -e /opt/cuda ]; then exit 78; fi
exec "$@"
"""
"""Runs a command in a mount namespace of its own, where no toolkit of CUDA's can be seen."""


def in_hiding(*command, path=""):
    words = ["unshare", "--mount", "sh", "-c", HIDDEN, "sh", *command]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), path])}
    return subprocess.run(words, capture_output=True, text=True, env=variables, check=False)


@needs("gpu:h200")
def test_without_a_toolkit_the_targets_say_no_and_what_to_install_and_with_the_wheel_yes():
    if in_hiding("true").returncode:
        pytest.skip("no mount namespace can be made here")
    tried = [sys.executable, "-m", "harness", "targets", "gpu:h200", "--format", "json"]
    wheel = any("nvcc" in one.name for one in metadata.distributions())
    done = in_hiding(*tried)
    [row] = json.loads(done.stdout)
    assert (done.returncode, row["here"]) == ((0, "yes") if wheel else (4, "no"))
    assert (
        wheel or "pip install nvidia-cuda-nvcc, which the extra 'targets' brings" in row["missing"]
    )


KERNEL = """
import jax
from jax.experimental import pallas as pl

from harness import Workload, spec


class AddKernel(Workload):
    def inputs(self):
        return spec((1024, 256)), spec((1024, 256))

    @staticmethod
    def function(x, y):
        def add(x_ref, y_ref, o_ref):
            o_ref[...] = x_ref[...] + y_ref[...]

        block = pl.BlockSpec((32, 256), lambda i: (i, 0))
        return pl.pallas_call(
            add, out_shape=x, grid=(32,), in_specs=[block, block], out_specs=block
        )(x, y)


class Published(Workload):
    def inputs(self):
        return (spec((64, 1024)),)

    @staticmethod
    def function(x):
        from jax.experimental.pallas.ops.gpu.softmax import softmax

        return softmax(x)


class PublishedOnTpu(Workload):
    def inputs(self):
        return (spec((512, 512)),)

    @staticmethod
    def function(x):
        from jax.experimental.pallas.ops.tpu.matmul import matmul

        return matmul(x, x, block_shape=(256, 256))


class Offload(Workload):
    def inputs(self):
        return spec((1024, 1024))

    @staticmethod
    def function(x):
        return jax.device_put(x + 1, jax.memory.Space.Host)
"""


@pytest.mark.parametrize("target", BOTH)
def test_a_kernel_of_pallas_is_built_and_its_work_is_unknown(tmp_path, target):
    (tmp_path / "kernels.py").write_text(KERNEL)
    [kernel] = [one for one in discover(tmp_path).workloads if one.__name__ == "AddKernel"]
    made = build.build(build.job(kernel, Case(target=target), "", with_facts=True))
    facts = made.facts
    assert [(one.name, one.line) for one in made.written] == [("add", 18)]
    assert (facts.custom_calls, facts.launches) == (1, 1)
    assert (facts.flops, facts.bytes_accessed, facts.host_bytes) == (None, None, 0)


@pytest.mark.parametrize(
    ("target", "workload", "name", "line"),
    [
        pytest.param(*row, marks=needs(row[0]))
        for row in (
            ("gpu:h200", "Published", "_vmappable_softmax_kernel", 31),
            ("tpu:v5e", "PublishedOnTpu", "matmul_kernel", 42),
        )
    ],
)
def test_a_published_kernel_is_named_with_the_line_that_calls_it(
    tmp_path, target, workload, name, line
):
    (tmp_path / "kernels.py").write_text(KERNEL)
    [chosen] = [one for one in discover(tmp_path).workloads if one.__name__ == workload]
    [kernel] = build.build(build.job(chosen, Case(target=target), "", with_facts=True)).written
    assert (kernel.name, kernel.file, kernel.line) == (name, str(tmp_path / "kernels.py"), line)


@pytest.mark.nightly
@pytest.mark.parametrize("target", BOTH)
def test_what_is_offloaded_is_memory_of_the_host(tmp_path, target):
    (tmp_path / "kernels.py").write_text(KERNEL)
    [offload] = [one for one in discover(tmp_path).workloads if one.__name__ == "Offload"]
    job = build.job(offload, Case(target=target), "", with_facts=True)
    facts = build.build(job).facts
    assert (facts.output_bytes, facts.host_bytes) == (0, 4 * 1024**2)


# The process is the target's


def checked_process(name="cpu"):
    target = targets.find(name)
    topologies.check_process(target.name, target.platforms, target.environment)


def test_a_process_with_another_targets_variables_is_refused(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cuda,cpu")
    with pytest.raises(topologies.Unusable, match="JAX_PLATFORMS is 'cuda,cpu', not 'cpu'"):
        checked_process()
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    checked_process()
    monkeypatch.delenv("TPU_SKIP_MDS_QUERY", raising=False)
    with pytest.raises(
        topologies.Unusable, match=r"tpu:v5e: .*TPU_SKIP_MDS_QUERY is None, not '1'"
    ):
        checked_process("tpu:v5e")
    was = jax.config.values["jax_platforms"]
    jax.config.update("jax_platforms", "tpu")
    try:
        with pytest.raises(topologies.Unusable, match="jax_platforms is 'tpu', not 'cpu'"):
            checked_process()
    finally:
        jax.config.update("jax_platforms", was)


def test_a_process_that_fell_back_to_the_cpu_is_refused():
    topologies.check_device("cpu", "")
    topologies.check_device("gpu:h200", targets.find("gpu:h200").description)
    said = "gpu was asked for, and JAX's first device is 'cpu' of the platform 'cpu'"
    with pytest.raises(topologies.Unusable, match=said):
        topologies.check_device("gpu", "")


def test_what_changes_the_environment_of_the_process_is_noticed(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nif 'JAX_PLATFORMS' in os.environ: os.environ['JAX_PLATFORMS'] = ''\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    outcome = sweep([Scale], tmp_path / "results")
    assert {r.status for r in outcome.records} == {"failed"}
    assert "not in the environment of cpu: JAX_PLATFORMS is ''" in outcome.records[0].reason
