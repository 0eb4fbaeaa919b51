from __future__ import annotations

import importlib.util
import re
from importlib import metadata
from pathlib import Path

import pytest

from harness import targets
from harness.errors import UsageError
from harness.records import environment
from harness.targets import described_gpu, host
from harness.workload.check import check
from harness.workload.workload import Workload, WorkloadError, spec

H200 = (Path(targets.__file__).parent / "data" / "h200.pbtxt").read_text()


class Plain(Workload):
    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return x


@pytest.mark.parametrize("name", ["", "h100", "gpu:", "gpu:h300", "tpu:v1", ":h200"])
def test_an_unknown_target_names_those_there_are(name):
    said = rf"No target is called '{name}'.* There are: cpu, gpu, tpu, gpu:a100, .*gpu:FILE\.pbtxt"
    with pytest.raises(UsageError, match=said):
        targets.find(name)


def test_upper_and_lower_case_are_alike():
    assert targets.find("GPU:H200") is targets.find("gpu:h200")


def test_an_incomplete_target_fails_where_it_is_made_with_what_it_lacks():
    with pytest.raises(TypeError, match="'lacking'"):
        targets.Target("mine", "cpu")
    with pytest.raises(TypeError, match="the target 'mine' lacks description"):
        targets.Target("mine", "cpu", lambda: None, compile_only="My GPU")


def test_every_target_a_workload_has_by_default_is_one_of_this_machine():
    real = {name for name, target in targets.TARGETS.items() if not target.compile_only}
    assert {targets.find(name).name for name in Workload.targets} == real


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gpu", r"no GPU plugin of JAX is installed \(extra 'gpu'\)|no GPU on this machine"),
        ("tpu", r"libtpu is not installed \(extra 'tpu'\)|no TPU on this machine"),
    ],
)
def test_an_accelerator_is_there_or_lacking_for_a_reason(name, reason):
    said = targets.find(name).lacking()
    assert said is None or re.search(reason, said)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gpu", "no GPU plugin of JAX is installed"),
        ("tpu", "libtpu is not installed"),
        ("tpu:v5e", "libtpu is not installed (extra 'targets')"),
    ],
)
def test_without_its_plugin_an_accelerator_is_lacking(monkeypatch, name, reason):
    monkeypatch.setattr(importlib.util, "find_spec", lambda plugin: None)
    assert targets.find(name).lacking().startswith(reason)


def installed(monkeypatch, **versions):
    """Make these distributions, and no others, look installed."""

    def version(name):
        if name.replace("-", "_") not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name.replace("-", "_")]

    monkeypatch.setattr(metadata, "version", version)


@pytest.mark.parametrize("cuda", ["cuda12", "cuda13"])
def test_the_compiler_for_a_gpu_needs_no_gpu(monkeypatch, cuda):
    versions = {f"jax_{cuda}_pjrt": "0.11.2", f"jax_{cuda}_plugin": "0.11.2", "jaxlib": "0.11.2"}
    installed(monkeypatch, **versions)
    assert targets.find("gpu:h200").lacking() is None


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({}, r"^jax-cuda13-pjrt is not installed \(extra 'targets'\)$"),
        (
            {"jax_cuda13_pjrt": "0.11.2"},
            r"^jax-cuda13-plugin is not installed, and jaxlib 0\.11\.2 needs its own: "
            r"pip install jax-cuda13-pjrt==0\.11\.2 jax-cuda13-plugin==0\.11\.2$",
        ),
        (
            {"jax_cuda13_pjrt": "0.10.2", "jax_cuda13_plugin": "0.10.2"},
            r"^jax-cuda13-pjrt is 0\.10\.2 and jax-cuda13-plugin is 0\.10\.2, and jaxlib 0\.11\.2",
        ),
    ],
)
def test_a_gpu_compiler_of_another_jax_is_none(monkeypatch, versions, said):
    installed(monkeypatch, jaxlib="0.11.2", **versions)
    assert re.search(said, targets.find("gpu:h200").lacking())


def test_accelerators_fall_back_to_the_cpu_and_what_is_compiled_for_runs_there():
    assert targets.find("cpu").lacking() is None
    platforms = [targets.find(name).platforms for name in ("cpu", "gpu", "tpu")]
    assert platforms in (["cpu", gpu, "tpu,cpu"] for gpu in ("cuda,cpu", "rocm,cpu"))
    for name, target in targets.TARGETS.items():
        assert bool(target.digest) == bool(target.compile_only)
        if target.compile_only:
            assert (target.platforms, target.family) == ("cpu", name.partition(":")[0])
            assert target.devices >= 2
    digests = [target.digest for target in targets.TARGETS.values() if target.digest]
    assert len(set(digests)) == len(digests)
    assert targets.find("gpu:h200").compile_only == "NVIDIA H200"
    sources = [one.description for one in targets.TARGETS.values() if one.name[:4] == "gpu:"]
    assert len(sources) == 4
    assert all("openxla/xla" in text.partition("gpu_device_info")[0] for text in sources)
    assert targets.find("tpu:v5e").environment["TPU_SKIP_MDS_QUERY"] == "1"
    assert not targets.find("gpu:h200").environment


@pytest.fixture
def described(tmp_path):
    """Write a description and return the target's name for it."""

    def write(name="a30.pbtxt", text=H200, encoding="utf-8"):
        (tmp_path / name).write_text(text, encoding=encoding)
        return f"gpu:{tmp_path / name}"

    return write


def test_a_file_gives_a_target_that_is_called_after_it(described):
    name = described(text=H200.replace("NVIDIA H200", "Mine"))
    found = targets.find(name)
    assert (found.name, found.family, found.compile_only) == ("gpu:a30", "gpu", "Mine")
    assert found.file == name.removeprefix("gpu:")
    assert found.digest == targets.find(name).digest != targets.find("gpu:h200").digest
    nameless = targets.find(described(text=re.sub("device_description_str.*", "", H200)))
    assert (nameless.name, nameless.compile_only) == ("gpu:a30", "a30")


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("a30.pbtxt", "", "has no gpu_device_info in it. Expected the text form of XLA's"),
        ("a30.pbtxt", 'platform_name: "CUDA"', "has no gpu_device_info in it"),
        ("a30.pbtxt", "# gpu_device_info {}", "has no gpu_device_info in it"),
        (
            "a30.pbtxt",
            H200.replace('"CUDA"', '"ROCM"'),
            "its platform_name is 'ROCM', and only CUDA can be compiled for. Expected",
        ),
        (
            "a30.pbtxt",
            H200.replace('platform_name: "CUDA"', ""),
            "its platform_name is missing, and only CUDA can be compiled for",
        ),
        (
            "h200.pbtxt",
            H200,
            "that no target has which is built in, and end in .pbtxt; rename 'h200.pbtxt'",
        ),
        ("V5e.pbtxt", H200, "no target has which is built in"),
        ("my gpu.pbtxt", H200, "must have a plain name of letters, digits, '-' and '_'"),
        ("m.gpu_target_config.pbtxt", H200, "rename 'm.gpu_target_config.pbtxt', for example"),
        ("a30.txt", H200, "and end in .pbtxt"),
    ],
)
def test_a_file_that_is_no_good_is_refused_with_the_remedy(described, file, text, said):
    name = described(file, text)
    with pytest.raises(UsageError, match=re.escape(said)):
        targets.find(name)


def test_a_gpu_without_a_public_description_is_refused_with_the_way_to_one():
    for name in ("gpu:t4", "GPU:L4"):
        with pytest.raises(UsageError, match=f"'{name}' has no public description.*gpu:FILE.pbtxt"):
            targets.find(name)


def test_the_version_of_ptxas_is_that_of_the_first_one_where_xla_looks(tmp_path, monkeypatch):
    tool = tmp_path / "ptxas"
    tool.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 1.2, V1.2.34'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert described_gpu.ptxas() == "1.2.34"
    assert environment.plugins().get("ptxas", "1.2.34") == "1.2.34"
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert described_gpu.ptxas() == ""


def test_a_file_that_is_not_there_or_no_text_is_refused(described, tmp_path):
    with pytest.raises(UsageError, match=r"b\.pbtxt cannot be read: No such file or directory"):
        targets.find(f"gpu:{tmp_path}/b.pbtxt")
    (tmp_path / "c.pbtxt").mkdir()
    with pytest.raises(UsageError, match=r"c\.pbtxt cannot be read: Is a directory"):
        targets.find(f"gpu:{tmp_path}/c.pbtxt")
    with pytest.raises(UsageError, match="holds no text"):
        targets.find(described(text="é", encoding="latin-1"))


def test_only_gpus_are_described_by_files(described):
    with pytest.raises(UsageError, match=r"only a GPU is described by a file.*tpu:v5e"):
        targets.find(described().replace("gpu:", "tpu:"))


def test_targets_asked_for_twice_are_one(described, tmp_path):
    assert [t.name for t in targets.find_all(["cpu", "gpu:h200", "cpu"])] == ["cpu", "gpu:h200"]
    (tmp_path / "other").mkdir()
    same, other = described(), described("other/a30.pbtxt", H200 + "\n")
    assert len(targets.find_all([same, same])) == 1
    with pytest.raises(UsageError, match=r"would both be called gpu:a30; rename one"):
        targets.find_all([same, other])


def test_a_declaration_may_name_a_compile_only_target_but_no_file(described):
    good = type("Good", (Plain,), {"targets": ("cpu", "gpu:h200", "tpu:v5e")})
    check(good)
    bad = type("Bad", (Plain,), {"targets": (described(),)})
    with pytest.raises(WorkloadError, match=r"targets names the file .* on one machine only"):
        check(bad)


@pytest.mark.parametrize(("text", "count"), [("", 2), ("1", 1), ("8", 8)])
def test_the_number_of_cpu_devices_follows_jaxs_own_variable(monkeypatch, text, count):
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", text)
    assert targets.virtual_cpu_devices() == count


@pytest.mark.parametrize("text", ["0", "-1", "two", "2.5", "²"])
def test_a_wrong_number_of_cpu_devices_is_an_error(monkeypatch, text):
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", text)
    said = rf"JAX_NUM_CPU_DEVICES is '{text}'; expected a whole number of at least 1"
    with pytest.raises(UsageError, match=said):
        targets.virtual_cpu_devices()


def test_a_survey_says_of_every_target_whether_it_is_here():
    seen = {sighting.name: sighting for sighting in targets.survey(targets.TARGETS.values())}
    assert list(seen) == list(targets.TARGETS)
    assert seen["cpu"].here
    for name, sighting in seen.items():
        assert sighting.here == (not sighting.lacking)
        if not targets.find(name).lacking():
            assert sighting.devices >= 1 or sighting.lacking


@pytest.mark.parametrize(
    ("platforms", "said"),
    [("cpu", "the CPU is all it has"), ("nonsense", "JAX cannot use it: ")],
)
def test_an_accelerator_that_jax_has_not_is_not_here(platforms, said):
    (sighting,) = targets.survey([targets.Target("gpu", platforms, lambda: None)])
    assert said in sighting.lacking


def test_another_libtpu_than_jax_names_is_told(monkeypatch):
    monkeypatch.setattr(
        host, "small_builds", lambda chosen: dict.fromkeys((t.name for t in chosen), "")
    )
    monkeypatch.setattr(metadata, "requires", lambda name: ['libtpu==0.0.48.*; extra == "tpu"'])
    installed(monkeypatch, libtpu="0.0.42.1")
    (sighting,) = targets.survey([targets.find("tpu:v5e")])
    assert "libtpu is 0.0.42.1; this JAX names 0.0.48.*" in sighting.what
    installed(monkeypatch, libtpu="0.0.48.3")
    assert "names" not in targets.survey([targets.find("tpu:v5e")])[0].what
