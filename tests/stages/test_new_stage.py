"""A stage and a scenario are added, each by a file and its entry, and seen where others are."""

import json

import pytest

from tests.added import House
from tests.sweeps import SUITES

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


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A harness with one stage and one scenario more, and what it measured in two nights."""
    house = House(tmp_path_factory.mktemp("house"))
    stages, scenarios = "harness/stages", "harness/stages/scenarios"
    house.add(
        f"{stages}/serialize.py",
        STAGE,
        f"{stages}/registry.py",
        "    dispatch.STAGE",
        "    serialize.STAGE",
        "from harness.stages import serialize",
    )
    house.add(
        f"{scenarios}/kept.py",
        SCENARIO,
        f"{scenarios}/registry.py",
        "default.SCENARIO",
        "kept.SCENARIO",
        "from harness.stages.scenarios import kept",
    )
    command = ["run", "Scale", "--effort", "2x1", "--scenario", "off", "--scenario", "kept"]
    command += ["--benchmarks", SUITES / "troubled", "-r", "results", "--machine", "tested"]
    for night in ("one", "two"):
        house.command(*command, "--night", night)
    return house


def python(house, script):
    """Return what a script prints that imports the copied harness."""
    done = house.python("-c", script)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_new_stage_is_in_the_frame_calibrated_in_its_place_and_proven(house):
    said = python(
        house,
        "import harness\n"
        "frame = harness.load('results')\n"
        "cases = frame[(frame.workload == 'small.Scale') & (frame.scenario == 'off')]\n"
        "print(list(dict.fromkeys(cases.stage.astype(str))))\n"
        "own = cases[cases.stage == 'serialize']\n"
        "print(len(own), set(own.status), (own['value'] > 0).all(), own.calibrated.notna().all())",
    )
    stages, row = said.splitlines()
    order = ["trace", "lower", "compile", "serialize", "dispatch", "execute"]
    assert [stage for stage in eval(stages) if stage in order] == order
    assert row == "4 {'ok'} True True"


def test_a_new_stage_is_shown_compared_reported_and_read_by_asv(house):
    assert "serialize" in house.command("show", "-r", "results")
    arms = ["compare", "night=one", "night=two", "-r", "results", "--stage", "serialize"]
    compared = json.loads(house.command(*arms, "--all", "--format", "json"))
    assert [(row["stage"], row["basis"]) for row in compared["rows"]] == [
        ("serialize", "calibrated")
    ] * 2
    house.command("report", "-r", "results", "-o", "page.html")
    assert "serialize" in (house.folder / "page.html").read_text()
    metrics = python(house, "from harness.asv.metrics import METRICS; print(METRICS['serialize'])")
    assert "scenario='off', stage='serialize', unit='seconds'" in metrics


def test_a_new_scenario_has_its_stages_and_is_measured_in_a_filled_directory(house):
    said = python(
        house,
        "import harness\n"
        "frame = harness.load('results')\n"
        "own = frame[(frame.workload == 'small.Scale') & (frame.scenario == 'kept')]\n"
        "print(sorted(set(own.stage)), set(own.status))",
    )
    assert said.strip() == "['first_call', 'load', 'lower', 'start', 'trace'] {'ok'}"
    assert "kept" in house.command("show", "-r", "results")
