"""A target is one object in one file, and one line in the registry."""

import json

import pytest

from harness.targets import TARGETS, Target, find
from tests.added import House

MINE = """
from pathlib import Path

from harness.targets.described_gpu import described

_H200 = (Path(__file__).parent / "data" / "h200.pbtxt").read_text()

TARGET = described("mine", _H200.replace("NVIDIA H200", "My GPU"))
"""

WORKLOAD = """
from harness import Workload, spec


class Sum(Workload):
    targets = ("gpu",)

    def inputs(self):
        return spec((64,))

    @staticmethod
    def function(x):
        return x.sum()
"""


def test_a_new_compile_only_target_is_built_for_and_shown(tmp_path):
    house = House(tmp_path)
    house.add(
        "harness/targets/my_gpu.py",
        MINE,
        "harness/targets/registry.py",
        "*described_tpu.KNOWN",
        "my_gpu.TARGET",
        "from harness.targets import my_gpu",
    )
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "sums.py").write_text(WORKLOAD)
    assert "gpu:mine" in house.command("targets")
    assert "My GPU, compiled for and not run" in house.command("targets")
    house.command("run", "Sum", "--target", "gpu:mine", "--effort", "1x1", "--machine", "here")
    if find("gpu:h200").lacking():
        pytest.skip("the compiler of gpu:h200 is not installed")
    (file,) = (tmp_path / "results").rglob("*.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines() if "Sum" in line]
    assert {record["target"] for record in records} == {"gpu:mine"}
    shown = house.command("show", "-s", "Sum", "--format", "csv")
    assert "gpu:mine" in shown
    assert "ok" in shown


def test_an_incomplete_target_fails_where_it_is_made_with_what_it_lacks():
    with pytest.raises(TypeError, match="'lacking'"):
        Target("mine", "cpu")
    with pytest.raises(TypeError, match="the target 'mine' lacks description"):
        Target("mine", "cpu", lambda: None, compile_only="My GPU")


def test_every_target_is_found_by_its_name():
    for name, target in TARGETS.items():
        assert find(name) is target
