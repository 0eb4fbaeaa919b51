"""The recipes of `tests/recipes.md`, as they are: one more of each is seen where others are.

The one of a cause is in `tests/profiles/causes/test_registry.py`.
"""

import json

import pytest

from harness.targets import find
from tests import forks
from tests.added import House, recipes

pytestmark = pytest.mark.slow
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
    for new, _ in recipes():
        house.follow(new.title)
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "sums.py").write_text(WORKLOAD)
    with forks.server(folder, PYTHONPATH=str(folder)) as house.forks:
        run = ("run", "Sum", "--case", "size=64", "--machine", "here", "--effort")
        for night in ("one", "two"):
            scenarios = ("--scenario", "off", "--scenario", "kept")
            house.command(*run, "1x1", *scenarios, "--night", night, "-r", "results")
        house.command(*run, "1x1", "--with-baselines", "--target", "cpu", "-r", "compared")
        house.command(*run, "1x1", "--target", "gpu:mine", "-r", "described")
        yield house


def python(house, script):
    """Return what a script prints that imports the copied harness."""
    done = house.python("-c", f"import harness, harness.asv.metrics\n{script}")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
def test_a_new_stage_is_in_the_frame_calibrated_in_its_place_and_proven(house):
    said = python(
        house,
        "frame = harness.load('results', all=True)\n"
        "cases = frame[(frame.workload == 'sums.Sum') & (frame.scenario == 'off')]\n"
        "print(list(dict.fromkeys(cases.stage.astype(str))))\n"
        "own = cases[cases.stage == 'serialize']\n"
        "print(len(own), set(own.status), (own['value'] > 0).all(), own.calibrated.notna().all())",
    )
    stages, row = said.splitlines()
    order = ["trace", "lower", "compile", "serialize", "dispatch", "execute"]
    assert [stage for stage in eval(stages) if stage in order] == order
    assert row == "2 {'ok'} True True"


@pytest.fixture(scope="module")
def page(house):
    """The report of the two nights."""
    house.command("report", "-r", "results", "-o", "page.html")
    return (house.folder / "page.html").read_text()


@pytest.mark.nightly
def test_a_new_stage_is_shown_compared_reported_and_read_by_asv(house, page):
    assert "serialize" in house.command("show", "-r", "results")
    arms = ["compare", "night=one", "night=two", "-r", "results", "--stage", "serialize"]
    compared = json.loads(house.command(*arms, "--all", "--format", "json"))
    [row] = compared["rows"]
    assert (row["stage"], row["unit"]) == ("serialize", "seconds")
    assert row["evidence"]
    assert "serialize" in page
    metrics = python(house, "print(harness.asv.metrics.METRICS['serialize'])")
    assert "scenario='off', stage='serialize', unit='seconds'" in metrics


@pytest.mark.nightly
def test_a_new_scenario_has_its_stages_and_is_measured_in_a_filled_directory(house):
    said = python(
        house,
        "frame = harness.load('results', all=True)\n"
        "own = frame[(frame.workload == 'sums.Sum') & (frame.scenario == 'kept')]\n"
        "print(sorted(set(own.stage)), set(own.status))",
    )
    assert said.strip() == "['first_call', 'load', 'lower', 'start', 'trace'] {'ok'}"
    assert "kept" in house.command("show", "-r", "results")


@pytest.mark.nightly
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
        "from harness.output.report.sections.against import chart\n"
        "from harness.baselines.registry import SIDES\n"
        "print(list(SIDES).index('twice'), SIDES['twice'].colour)\n"
        "print('twice' in str(chart(harness.against_baseline('compared')).to_dict()))",
    )
    assert said.split() == ["2", "#123456", "True"]


@pytest.mark.nightly
def test_a_new_fact_is_recorded_shown_and_read_by_asv(house):
    said = python(
        house,
        "(value,) = set(harness.load('compared', all=True)['selects'].dropna())\n"
        "print(value, harness.asv.metrics.METRICS['selects'].unit)",
    )
    assert said.split() == ["1.0", "count"]
    assert "selects" in house.command("show", "--facts", "-r", "compared")
    printed = house.command("ir", "Sum", "--target", "cpu", "--facts")
    (row,) = (line for line in printed.splitlines() if line.split()[:1] == ["selects"])
    assert row.split() == ["selects", "1", "choices", "between", "two", "arrays"]


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_a_new_section_is_on_the_page_with_its_table(page):
    assert '<h2 id="sizes-title">Sizes</h2>' in page
    assert '<div class="table" data-table="sizes"></div>' in page
    assert "How much was measured?" in page
