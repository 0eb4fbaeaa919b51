"""`harness aa` measures identical arms, resumes, and says how often they are called different."""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import harness
from harness.cli import app
from harness.errors import HarnessWarning, UsageError
from harness.frame.load import frame_of
from harness.measure.context import local_context
from harness.records.schema import StageSamples
from harness.records.store import Store
from harness.stages.injection import name
from harness.stages.registry import CASE_STAGES
from harness.verdicts.aa import rates as of
from harness.verdicts.aa.arms import injections, medians_ns, name_of_run, usual_effects
from harness.verdicts.error_rates import ErrorRates, rate
from tests.frame.trees import record
from tests.sweeps import SUITES

EFFECTS = {"compile": 0.2}


def aa(results: Path, *options: str):
    """Run the command on one tiny workload."""
    given = ["--benchmarks", str(SUITES / "troubled"), "-r", str(results), "--machine", "box"]
    return CliRunner().invoke(app, ["aa", *given, "--seed", "1", *options])


def arm(values: dict[int, list[float]], stage="compile", reference="compile", **fields):
    """Return records of one stage: cases by size, one value in seconds per process."""
    about = {"reference_ns": {reference: 1e6}, **fields}
    return [
        record(process, {stage: [seconds * 1e9]}, axes={"size": size}, **about)
        for size, processes in values.items()
        for process, seconds in enumerate(processes)
    ]


def steady(center: float, processes: int = 8) -> list[float]:
    """Return values that scatter by a percent."""
    return [center * (1 + 0.01 * (process % 3 - 1)) for process in range(processes)]


def judged(a, b):
    """Return two arms and their verdicts, as a run's rates are made of them."""
    return of.judged(*(of.anonymous(frame_of(records)) for records in (a, b)))


def found(control, slowed, effects):
    """Return which slow-downs are found, each with its stage."""
    return list(of.found_of(frame_of(control), frame_of(slowed), effects, random.Random(1)))


def test_a_run_is_measured_stored_and_resumed(tmp_path):
    options = ["-s", "Scale", "--case", "size=8", "--effort", "1x1", "--effect", "compile=9"]
    done = aa(tmp_path, *options)
    assert done.exit_code == 0, done.output
    assert " rows of the same code are called different, " in done.output
    assert "1 pair of the same code" in done.output
    assert "+900 %" in done.output
    (file,) = (tmp_path / "box" / "aa").glob("*.json5")
    rates = msgspec.json.decode(file.read_bytes(), type=ErrorRates)
    assert (rates.machine, rates.effort, rates.pairs) == ("box", "1x1", 1)
    assert rates.narrowed
    assert rates.flagged.of == rates.flagged_by_asv.of == len(CASE_STAGES)
    assert set(rates.flagged_by_stage) == set(rates.asv_by_stage) == {n.stage for n in rates.noise}
    assert all(len(noise.ratios) == 1 and noise.axes == {"size": 8} for noise in rates.noise)
    (found,) = rates.power
    # Whether so few processes show it is the machine's business; fixed numbers are judged below.
    assert (found.stage, found.effect, found.found.of) == ("compile", 9.0, 1)
    assert "3 records measured, 0 were there" in done.output
    kept = (tmp_path / "box" / "aa" / "records").rglob("*.jsonl")
    assert len({one.seed for file in kept for one in Store(file).read()}) == 3, "orders of arms"

    text = file.read_text()
    again = aa(tmp_path, *options)
    assert again.exit_code == 0
    assert "0 records measured, 3 were there" in again.output
    assert file.read_text() == text
    kept = aa(tmp_path, *options[:-2])
    assert "0 records measured, 2 were there" in kept.output
    assert json.loads(file.read_text())["power"] == json.loads(text)["power"]

    with pytest.warns(HarnessWarning, match="no results"):
        assert harness.load(tmp_path, all=True).empty  # out of the way of ordinary records


@pytest.mark.nightly
def test_failed_cases_are_told(tmp_path):
    done = aa(tmp_path, "-s", "Troubled", "--case", "trouble=raise", "--effort", "1x1")
    assert done.exit_code == 3, done.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--effect", "compile"], "expected STAGE=EFFECT, such as compile=0.2"),
        (
            ["--effect", "import=0.2"],
            "the stages are trace, lower, compile, dispatch, execute, compute, in_flight",
        ),
        (["--effect", "compile=-1"], "expected STAGE=EFFECT"),
        (["--name", "../x"], "is no name for a run"),
        (["-s", "Nothing"], "No workload matches"),
    ],
)
def test_wrong_options_are_explained(options, said, tmp_path):
    done = aa(tmp_path, *options)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)


def test_slow_downs_of_one_stage_are_in_arms_of_their_own():
    usual, thorough = usual_effects("default"), usual_effects("thorough")
    assert usual == {"trace": 0.2, "lower": 0.2, "compile": 0.1, "execute": 0.2, "compute": 0.1}
    assert injections([], "default") == [usual]
    assert injections([], "thorough") == [usual, thorough]
    given = ["compile=0.1", "trace=1", "compile=0.2"]
    assert injections(given, "default") == [{"compile": 0.1, "trace": 1}, {"compile": 0.2}]


def test_a_rate_has_the_exact_interval():
    one, none = rate(1, 100), rate(0, 0)
    assert (one.count, one.of) == (1, 100)
    assert (one.low, one.high) == pytest.approx((0.000253, 0.054459), abs=1e-6)
    assert (none.low, none.high) == (0.0, 1.0)


def test_asv_takes_seconds_as_measured_and_so_do_we():
    a, b = (arm({8: steady(by)}, "execute", "loop") for by in (1.0, 1.5))
    one = judged(a, b)
    assert list(of.rows_called(one)) == [("execute", True)]
    for both in (one, judged(b, a)):
        assert list(of.rows_called_by_asv(both)) == [("execute", True)]
    (noise,) = of.noise([one])
    assert noise.ratios == [pytest.approx(1.5)]


@pytest.mark.nightly
def test_a_slow_down_is_judged_among_rows_of_which_it_is_taken_back():
    sizes = range(8, 48)
    same = arm({size: steady(1.0) for size in sizes})
    slow = arm({size: steady(1.2) for size in sizes})
    assert found(same, slow, EFFECTS) == [("compile", True)] * len(sizes)
    # A tool that finds a slow-down where there is none would find these as well.
    assert found(same, same, {"compile": 1e-9}) == [("compile", False)] * len(sizes)
    assert found(same, slow, {"trace": 0.5}) == []
    # Axes that are called like columns of a comparison hide none.
    a, b = ([msgspec.structs.replace(r, axes={"p": 1}) for r in own[:8]] for own in (same, slow))
    assert found(a, b, EFFECTS) == [("compile", True)]


def test_what_is_called_counts_by_row_and_by_family():
    same, slow = ({size: steady(by if size == 8 else 1.0) for size in (8, 9)} for by in (1.0, 2.0))
    one = judged(arm(same), arm(slow))
    assert sorted(of.rows_called(one)) == [("compile", False), ("compile", True)]
    assert list(of.families_called(one)) == [("compile", True)]
    assert list(of.families_called(judged(arm(same), arm(same)))) == [("compile", False)]
    apart = judged(arm({8: steady(1.0)}), arm({16: steady(1.0)}))
    assert [*of.rows_called(apart), *of.rows_called_by_asv(apart), *of.noise([apart])] == []
    # Equal programs do not hide an execution that differs.
    a, b = (arm({8: steady(s)}, "execute", "loop", fingerprint="p") for s in (1.0, 3.0))
    assert list(of.rows_called(judged(a, b))) == [("execute", True)]


def test_a_run_of_some_workloads_has_a_name_of_its_own(tmp_path):
    context = local_context(tmp_path, SUITES, "box")
    whole = name_of_run(context, "default")
    assert name_of_run(context, "default", chosen=[[], [], []]) == whole
    some = name_of_run(context, "default", chosen=[["Gelu"], [], []])
    assert some.startswith(f"{whole}-")
    assert some != name_of_run(context, "default", chosen=[[], ["Gelu"], []])
    assert name_of_run(context, "default", "mine", [["Gelu"], [], []]) == "mine"


def test_a_slow_down_is_sized_by_the_median_over_processes():
    records = arm({8: [1.0, 5.0, 2.0]})
    case = "size=8, transform='forward', target='cpu'"
    assert medians_ns(records) == {name("family.Work", case): {"compile": 2e9}}
    stages = {"lower": StageSamples([7e9, 8e9], cpu_ns=[4e9, 3e9])}
    built = [msgspec.structs.replace(r, stages=stages) for r in records]
    assert medians_ns(built) == {name("family.Work", case): {"lower": 3e9}}
