"""The checks for a machine with a GPU; and, on one that has none, that they say so."""

import importlib
import json

import pytest

from harness import targets
from harness.baselines.cupy_eager import DRIVER_FILE
from tools.gpu import ready
from tools.gpu.checks import CHECKS
from tools.gpu.libraries import Xla
from tools.gpu.programs import slope

runner = importlib.import_module("tools.gpu.__main__")
no_driver = pytest.mark.skipif(DRIVER_FILE.exists(), reason="there is a CUDA driver")
LACKING = targets.find("gpu").lacking()
pytestmark = pytest.mark.usefixtures("fresh_processes")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("gpu")


@pytest.mark.gpu
@pytest.mark.skipif(bool(LACKING), reason=str(LACKING))
@pytest.mark.parametrize("name", CHECKS)
def test_on_a_gpu_the_method_holds(scratch, name):
    report = runner.perform(name, scratch)
    if report["status"] == "n/a":
        pytest.skip(report["reason"])
    assert report["status"] == "ok", report["reason"]
    if name == "CuPy in jax.profiler":
        assert report["value"]["seen"]


def test_cupy_gets_no_jax_on_the_device_and_each_check_its_flags(tmp_path):
    for name, (library, _, own) in CHECKS.items():
        environment = runner.environment(name, tmp_path)
        assert set(own) <= set(environment)
        assert (environment["JAX_PLATFORMS"] == "cpu") == (library is not Xla)
        assert environment["CUPY_CACHE_DIR"].startswith(str(tmp_path))


def does_not_apply(report):
    said = any(word in report["reason"] for word in ("GPU", "CUDA", "CuPy"))
    return said and report["status"] == "n/a"


@no_driver
@pytest.mark.parametrize("name", ["knee, XLA", "knee, CuPy"])
def test_without_a_gpu_a_check_says_why_it_does_not_apply(tmp_path, name):
    report = runner.perform(name, tmp_path)
    assert does_not_apply(report), report


@no_driver
def test_a_check_that_fails_or_hangs_stops_no_other(tmp_path, monkeypatch, capsys):
    crash = (None, print, {"PYTHONHOME": "/nowhere"})
    monkeypatch.setitem(CHECKS, "crash", crash)
    monkeypatch.setenv("HARNESS_RESULTS", str(tmp_path))
    assert runner.main("here", ["crash", "compile times, cold"]) == 3
    lines = (tmp_path / "checks" / "here" / "gpu.jsonl").read_text().splitlines()
    crashed, other = map(json.loads, lines)
    assert crashed["status"] == "failed"
    assert "exit code" in crashed["reason"]
    assert does_not_apply(other), other
    assert "failed  crash" in capsys.readouterr().out
    assert not list(tmp_path.rglob("*.json")), "would be taken for a file of asv's"

    slow = runner.perform("compile times, cold", tmp_path, 0.01)
    assert (slow["status"], slow["reason"]) == ("failed", "not done after 0 s")


def test_what_a_machine_lacks_is_named_with_the_command_that_brings_it():
    assert ready.advice({}, {}) == ""
    text = ready.advice({"msgspec": "msgspec"}, {"cupy": "cupy-cuda13x[ctk]"})
    assert "cannot import cupy, msgspec" in text
    assert "pip download" in text
    assert "PYTHONPATH=carried make gpu" in text
    assert "pip download" not in ready.advice({}, {"cupy": "cupy-cuda13x[ctk]"})


def test_the_slope_is_per_call():
    calls = []
    timed = slope(lambda: calls.append(1), lambda result: None)
    assert timed["dispatch_s"] > 0
    assert len(calls) == 3 + 9 * (4 + 20)
