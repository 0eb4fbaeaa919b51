"""A stage and a scenario are added, each by a file and its entry, and seen where others are."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness
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


def enter(registry, name, kind):
    """Enter a module's object into a registry: its import, and its place in the table."""
    text = registry.read_text()
    at = text.index(f".{kind},") - len(text[: text.index(f".{kind},")].split()[-1])
    text = f"{text[:at]}{name}.{kind},\n            {text[at:]}"
    place = "harness.stages" + (".scenarios" if kind == "SCENARIO" else "")
    first = text.index(f"from {place} import")
    registry.write_text(f"{text[:first]}from {place} import {name}\n{text[first:]}")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A harness with one stage and one scenario more, and what it measured: twice two processes."""
    folder = tmp_path_factory.mktemp("house")
    here = Path(harness.__file__).parent
    shutil.copytree(here, folder / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    stages = folder / "harness" / "stages"
    (stages / "serialize.py").write_text(STAGE)
    enter(stages / "registry.py", "serialize", "STAGE")
    (stages / "scenarios" / "kept.py").write_text(SCENARIO)
    enter(stages / "scenarios" / "registry.py", "kept", "SCENARIO")
    command = ["run", "Scale", "--effort", "2x1", "--scenario", "off", "--scenario", "kept"]
    command += ["--benchmarks", str(SUITES / "troubled"), "-r", "results", "--machine", "tested"]
    for night in ("one", "two"):
        run(folder, *command, "--night", night)
    return folder


def run(folder, *arguments, good=(0,)):
    """Return what a command of the copied harness prints."""
    done = subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in good, done.stderr
    return done.stdout


def python(folder, script):
    """Return what a script prints that imports the copied harness."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
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
    shown = run(house, "show", "-r", "results")
    assert "serialize" in shown
    arms = ["compare", "night=one", "night=two", "-r", "results", "--stage", "serialize"]
    compared = json.loads(run(house, *arms, "--all", "--format", "json", good=(0, 1)))
    assert [(row["stage"], row["basis"]) for row in compared["rows"]] == [
        ("serialize", "calibrated")
    ] * 2
    run(house, "report", "-r", "results", "-o", "page.html")
    assert "serialize" in (house / "page.html").read_text()
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
    assert "kept" in run(house, "show", "-r", "results")
