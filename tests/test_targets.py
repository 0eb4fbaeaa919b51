from __future__ import annotations

import importlib.util
import re

import pytest

from harness import targets
from harness.errors import UsageError
from harness.workload import Workload


def test_the_cpu_is_never_lacking():
    assert targets.find("cpu").lacking() is None
    assert targets.find("cpu").platforms == "cpu"


@pytest.mark.parametrize("name", ["", "h100", "CPU"])
def test_an_unknown_target_names_those_there_are(name):
    with pytest.raises(UsageError, match=rf"No target is called '{name}'; known are cpu, gpu, tpu"):
        targets.find(name)


def test_every_target_a_workload_has_by_default_is_known():
    assert {targets.find(name).name for name in Workload.targets} == set(targets.TARGETS)


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
    [("gpu", "no GPU plugin of JAX is installed"), ("tpu", "libtpu is not installed")],
)
def test_without_its_plugin_an_accelerator_is_lacking(monkeypatch, name, reason):
    monkeypatch.setattr(importlib.util, "find_spec", lambda plugin: None)
    assert targets.find(name).lacking().startswith(reason)


def test_accelerators_fall_back_to_the_cpu_for_what_they_cannot_do():
    assert targets.find("gpu").platforms.endswith(",cpu")
    assert targets.find("tpu").platforms == "tpu,cpu"


@pytest.mark.parametrize(("text", "count"), [(None, 2), ("", 2), ("1", 1), ("8", 8)])
def test_the_number_of_cpu_devices_follows_jaxs_own_variable(monkeypatch, text, count):
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES", raising=False)
    if text is not None:
        monkeypatch.setenv("JAX_NUM_CPU_DEVICES", text)
    assert targets.virtual_cpu_devices() == count


@pytest.mark.parametrize("text", ["0", "-1", "two", "2.5", "²"])
def test_a_wrong_number_of_cpu_devices_is_an_error(monkeypatch, text):
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", text)
    said = rf"JAX_NUM_CPU_DEVICES is '{text}'; expected a whole number of at least 1"
    with pytest.raises(UsageError, match=said):
        targets.virtual_cpu_devices()
