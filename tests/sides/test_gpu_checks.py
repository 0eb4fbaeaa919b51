"""The verifications for a machine with a GPU, on one that has none."""

from __future__ import annotations

import importlib
import json

import pytest

from harness.sides.cupy_library import DRIVER_FILE
from harness.sides.gpu_checks import cupy_checks, jax_checks, ready
from harness.sides.gpu_checks.programs import slope

runner = importlib.import_module("harness.sides.gpu_checks.__main__")
no_driver = pytest.mark.skipif(DRIVER_FILE.exists(), reason="there is a CUDA driver")


def test_every_check_names_a_function_that_is_there(tmp_path):
    names = set()
    for check in runner.checks(tmp_path):
        names.add(check.name)
        module = {"jax": jax_checks, "cupy": cupy_checks}[check.side]
        assert check.function in {*module.CHECKS, "compile-only", "compile-times"}
    assert len(names) == len(runner.checks(tmp_path))


def test_cupy_gets_no_jax_on_the_device_and_each_check_its_flags(tmp_path):
    for check in runner.checks(tmp_path):
        environment = runner.environment(check, tmp_path)
        assert environment.items() >= check.environment.items()
        if check.side == "cupy":
            assert environment["JAX_PLATFORMS"] == "cpu"
            assert environment["CUPY_CACHE_DIR"].startswith(str(tmp_path))


@no_driver
@pytest.mark.parametrize(("side", "function"), [("jax", "knee"), ("cupy", "compile-times")])
def test_without_a_gpu_a_check_says_why_it_does_not_apply(tmp_path, side, function):
    found = runner.perform(runner.Check("one", side, function), tmp_path)
    assert found["status"] == "n/a"
    assert any(word in found["reason"] for word in ("GPU", "CUDA", "CuPy"))


@no_driver
def test_a_check_that_fails_or_hangs_stops_no_other(tmp_path, monkeypatch, capsys):
    crash = runner.Check("crash", "cupy", "launches", {"PYTHONHOME": "/nowhere"})
    other = runner.Check("other", "cupy", "compile-times")
    monkeypatch.setattr(runner, "checks", lambda scratch: [crash, other])
    monkeypatch.setenv("HARNESS_RESULTS", str(tmp_path))
    assert runner.main(["here"]) == 3
    lines = (tmp_path / "checks" / "here" / "gpu.jsonl").read_text().splitlines()
    report = {line["check"]: line for line in map(json.loads, lines)}
    assert report["crash"]["status"] == "failed"
    assert "exit code" in report["crash"]["reason"]
    assert report["other"]["status"] == "n/a"
    assert "failed  crash" in capsys.readouterr().out
    assert not list(tmp_path.rglob("*.json")), "would be taken for a file of asv's"

    slow = runner.perform(other, tmp_path, 0.01)
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
    found = slope(lambda: calls.append(1), lambda result: None)
    assert found["dispatch_s"] > 0
    assert len(calls) == 3 + 9 * (4 + 20)
