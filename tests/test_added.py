"""One more of each kind of thing: a new file and a line each, and it is seen where others are."""

import json

import pytest

from harness.targets import find
from tests import forks
from tests.added import House

STAGE = '''"""`serialize`."""

from jax.experimental import serialize_executable

from harness.stages.stage import Stage, median


def take(run):
    """Make bytes of the program."""
    run.timed("serialize", lambda: serialize_executable.serialize(run.build.compiled), {})


STAGE = Stage(
    name="serialize",
    title="The program becomes bytes.",
    order=85,
    step="compile",
    statistic=median,
    calibrated_by="compile",
    effect=0.1,
    colour="#8B5CF6",
    take=take,
    asv={"off": "serialize"},
)
'''

SCENARIO = '''"""`kept`."""

from harness.stages.scenarios.scenario import HIT, WRITE_ALL, Scenario

SCENARIO = Scenario(
    name="kept",
    description="a directory that another process has filled, and first calls alone",
    steps=("load", "build", "first_call"),
    directory="filled",
    filled_in="cold",
    settings=WRITE_ALL,
    outcomes=(("load", HIT),),
)
'''

SIDE = '''
from harness.sides.numpy_side import NumpySide


class TwiceSide(NumpySide):
    """The baseline, computed twice."""

    name = "twice"
    title = "the workload's baseline in NumPy, twice"
    families = ("cpu",)
    colour = "#123456"

    def build(self, workload, case, arguments):
        call = super().build(workload, case, arguments)
        return lambda *arguments: (call(*arguments), call(*arguments))[1]
'''

FACT = """
from harness.program.fact import Fact

SELECTS = Fact(
    name="selects",
    source="stablehlo",
    unit="count",
    better="less",
    meaning="choices between two arrays",
    noun="select",
    read=lambda lowered: lowered.as_text().count("stablehlo.select"),
    rank=9,
    column=True,
)
"""

TARGET = """
from pathlib import Path

from harness.targets.described_gpu import described

_H200 = (Path(__file__).parent / "data" / "h200.pbtxt").read_text()

TARGET = described("mine", _H200.replace("NVIDIA H200", "My GPU"))
"""

WORKLOAD = """
import jax.numpy as jnp

from harness import Workload, spec


class Sum(Workload):
    sweep = {"size": [64]}
    targets = ("cpu", "gpu")

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return jnp.where(x > 0, x, 0.0).sum()

    @staticmethod
    def baseline(xp, x):
        return xp.where(x > 0, x, 0.0).sum()
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A harness with one more of each, and what it measured in two nights."""
    folder = tmp_path_factory.mktemp("house")
    house = House(folder)
    for file, text, registry, before, line in (
        ("stages/serialize", STAGE, "stages/registry", "    dispatch.STAGE", "    serialize.STAGE"),
        ("stages/scenarios/kept", SCENARIO, "stages/scenarios/registry", "default.", "kept."),
        ("sides/twice_side", SIDE, "sides/registry", "FusedSide,", "TwiceSide"),
        ("program/selects", FACT, "program/facts", "stablehlo.BYTES", "selects.SELECTS"),
        ("targets/my_gpu", TARGET, "targets/registry", "*described_tpu.KNOWN", "my_gpu.TARGET"),
    ):
        room, _, module = f"harness.{file.replace('/', '.')}".rpartition(".")
        imported = f"from {room} import {module}"
        if line == "TwiceSide":
            imported = f"from {room}.{module} import {line}"
        if line == "kept.":
            line = "kept.SCENARIO"
        house.add(f"harness/{file}.py", text, f"harness/{registry}.py", before, line, imported)
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "sums.py").write_text(WORKLOAD)
    with forks.server(folder, PYTHONPATH=str(folder)) as house.forks:
        run = ("run", "Sum", "--case", "size=64", "--machine", "here", "--effort")
        for night in ("one", "two"):
            scenarios = ("--scenario", "off", "--scenario", "kept")
            house.command(*run, "2x1", *scenarios, "--night", night, "-r", "results")
        house.command(*run, "1x1", "--with-baselines", "--target", "cpu", "-r", "compared")
        house.command(*run, "1x1", "--target", "gpu:mine", "-r", "described")
        yield house


def python(house, script):
    """Return what a script prints that imports the copied harness."""
    done = house.python("-c", f"import harness, harness.asv.metrics\n{script}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_new_stage_is_in_the_frame_calibrated_in_its_place_and_proven(house):
    said = python(
        house,
        "frame = harness.load('results')\n"
        "cases = frame[(frame.workload == 'sums.Sum') & (frame.scenario == 'off')]\n"
        "print(list(dict.fromkeys(cases.stage.astype(str))))\n"
        "own = cases[cases.stage == 'serialize']\n"
        "print(len(own), set(own.status), (own['value'] > 0).all(), own.calibrated.notna().all())",
    )
    stages, row = said.splitlines()
    order = ["trace", "lower", "compile", "serialize", "dispatch", "execute"]
    assert [stage for stage in eval(stages) if stage in order] == order
    assert row == "2 {'ok'} True True"


def test_a_new_stage_is_shown_compared_reported_and_read_by_asv(house):
    assert "serialize" in house.command("show", "-r", "results")
    arms = ["compare", "night=one", "night=two", "-r", "results", "--stage", "serialize"]
    compared = json.loads(house.command(*arms, "--all", "--format", "json"))
    assert [(row["stage"], row["basis"]) for row in compared["rows"]] == [
        ("serialize", "calibrated")
    ]
    house.command("report", "-r", "results", "-o", "page.html")
    assert "serialize" in (house.folder / "page.html").read_text()
    metrics = python(house, "print(harness.asv.metrics.METRICS['serialize'])")
    assert "scenario='off', stage='serialize', unit='seconds'" in metrics


def test_a_new_scenario_has_its_stages_and_is_measured_in_a_filled_directory(house):
    said = python(
        house,
        "frame = harness.load('results')\n"
        "own = frame[(frame.workload == 'sums.Sum') & (frame.scenario == 'kept')]\n"
        "print(sorted(set(own.stage)), set(own.status))",
    )
    assert said.strip() == "['first_call', 'load', 'lower', 'start', 'trace'] {'ok'}"
    assert "kept" in house.command("show", "-r", "results")


def test_a_new_side_is_measured_compared_and_drawn(house):
    shown = house.command("baselines", "-s", "Sum", "-r", "compared", "--format", "json")
    rows = json.loads(shown)
    assert [(row["threads"], row["baseline"]) for row in rows] == [
        (threads, baseline) for threads in ("one", "all") for baseline in ("numpy", "twice")
    ]
    for row in rows:
        assert row["baseline_s"] > 0
        assert not row["verdict"].startswith("no ratio"), row["verdict"]
    said = python(
        house,
        "from harness.report.figures.against import chart\n"
        "from harness.sides.registry import SIDES\n"
        "print(list(SIDES).index('twice'), SIDES['twice'].colour)\n"
        "print('twice' in str(chart(harness.against_baseline('compared')).to_dict()))",
    )
    assert said.split() == ["2", "#123456", "True"]


def test_a_new_fact_is_recorded_shown_and_read_by_asv(house):
    said = python(
        house,
        "(value,) = set(harness.load('compared')['selects'].dropna())\n"
        "print(value, harness.asv.metrics.METRICS['selects'].unit)",
    )
    assert said.split() == ["1.0", "count"]
    assert "selects" in house.command("show", "--facts", "-r", "compared")
    printed = house.command("ir", "Sum", "--target", "cpu", "--facts")
    (row,) = (line for line in printed.splitlines() if line.split()[:1] == ["selects"])
    assert row.split() == ["selects", "1", "choices", "between", "two", "arrays"]


def test_a_new_compile_only_target_is_built_for_and_shown(house):
    listed = house.command("targets")
    assert "gpu:mine" in listed
    assert "My GPU, compiled for and not run" in listed
    if find("gpu:h200").lacking():
        pytest.skip("the compiler of gpu:h200 is not installed")
    (file,) = (house.folder / "described").rglob("*.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines() if "Sum" in line]
    assert {record["target"] for record in records} == {"gpu:mine"}
    shown = house.command("show", "-s", "Sum", "-r", "described", "--format", "csv")
    assert "gpu:mine" in shown
    assert "ok" in shown
