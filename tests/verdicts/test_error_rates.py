"""What identical arms of a machine say: error rates, and the smallest effect that counts."""

from __future__ import annotations

import json
import math
import random
import statistics

import msgspec
import pytest

from harness.errors import HarnessWarning
from harness.frame.frame import axes_key
from harness.frame.pairs import CASE
from harness.records import json_file
from harness.stages import registry
from harness.verdicts.error_rates import Power, Rate, scatter_of, stored
from tests.frame.trees import COMMIT, ENV
from tests.verdicts.arms_of import OTHER, tree
from tests.verdicts.test_rules import rates_of


def store(folder, name, rates):
    json_file.write(folder / "box" / "aa" / f"{name}.json5", rates)


def test_those_of_its_effort_and_environment_stand_under_a_comparison(compare, tmp_path):
    power = Rate(19, 20, 0.75, 1.0)
    rates = rates_of([1.01], env=ENV, families={"compile": Rate(0, 12, 0.0, 0.3)})
    rates.power = [Power("compile", 0.2, "default", power), Power("trace", 0.1, "quick", power)]
    tree(tmp_path)
    for other in ({"env": "other"}, {"env": ENV, "effort": "thorough"}):
        store(tmp_path, other["env"], rates_of([1.01], **other))
    said = f"Error rates (box, effort default, {ENV}): unknown; `harness aa --power` measures them."
    assert said in compare(COMMIT, OTHER, "-r", tmp_path)[1]
    store(tmp_path, "one", rates)
    assert (
        f"Error rates (box, effort default, {ENV}): identical arms were called different in 0 of "
        "400 rows (95 %: 0 to 0.9 %), in 0 of 12 families. Slow-downs put in were found: "
        "compile +20 % in 19 of 20.\n" in compare(COMMIT, OTHER, "-r", tmp_path)[1]
    )


def test_those_of_all_workloads_come_first_and_then_the_newest(compare, tmp_path):
    for number, (env, at, narrowed) in enumerate(
        ((ENV, 1, False), (ENV, 2, False), ("f", 3, False), (ENV, 9, True))
    ):
        rates = rates_of([], env=env, narrowed=narrowed)
        store(tmp_path, number, msgspec.structs.replace(rates, started_at_ms=at))
    store(tmp_path, "quick", rates_of([], effort="quick"))

    found = stored(tmp_path, "box", "default")
    assert [one.started_at_ms for one in found] == [3, 2, 1, 9]
    said = compare(COMMIT, OTHER, "-r", tree(tmp_path), "--format", "json")[1]
    (of_env,) = json.loads(said)["error_rates"].values()
    assert of_env["started_at_ms"] == 2
    assert stored(tmp_path, "elsewhere", "default") == []


def test_files_that_cannot_be_used_are_named_and_left_out(tmp_path):
    store(tmp_path, "one", rates_of([], env="e7"))
    path = tmp_path / "box" / "aa" / "one.json5"
    text = path.read_text()
    for damaged, said in (
        (text.replace("e7", "e8"), "its checksum is wrong"),
        (text[: text.rindex(',"crc32"')] + "}", "its checksum is missing"),
        ("{}", r"one\.json5 are left out"),
    ):
        path.write_text(damaged)
        with pytest.warns(HarnessWarning, match=said):
            assert stored(tmp_path, "box", "default") == []
    store(tmp_path, "one", rates_of([], schema=99))
    with pytest.warns(HarnessWarning, match="schema version 99"):
        assert stored(tmp_path, "box", "default") == []
    old = msgspec.to_builtins(rates_of([], env="e8", schema=1))  # of before checksums
    path.write_bytes(msgspec.json.encode(old))
    assert [one.env for one in stored(tmp_path, "box", "default")] == ["e8"]
    for later in ("method", "families"):
        del old[later]
    path.write_bytes(msgspec.json.encode(old))
    assert stored(tmp_path, "box", "default") == [], "an older way to judge"


SIZES = range(20)
FLOOR = registry.effect("compile")


def run(scatter, pairs=1, seed=0, noisy=(), sizes=SIZES):
    """Return what `harness aa` stores of a stage of cases that scatter alike, but for `noisy`."""
    rng = random.Random(f"{seed}{scatter}")
    spreads = {size: scatter * (5 if size in noisy else 1) for size in sizes}
    return rates_of(
        {size: [rng.lognormvariate(0, by) for _ in range(pairs)] for size, by in spreads.items()}
    )


def thresholds(*runs):
    """Return the threshold of each size, and that of cases that were never measured."""
    found = scatter_of(runs)
    case = dict(
        zip(CASE, ("family.Work", "cpu", "forward", "", "off", "compile"), strict=True)
    ).values()
    own = [found.get(("box", *case, axes_key({"size": size})), 0.0) for size in SIZES]
    return own, found.get(("box", "compile"), 0.0)


def test_one_disturbed_run_does_not_blind_the_tool_for_ever():
    calm, disturbed = run(0.02, pairs=3), run(0.3, seed=1)
    before, _ = thresholds(calm)
    blinded, of_stage = thresholds(disturbed)
    after, _ = thresholds(calm, disturbed)

    assert of_stage > 0.3
    assert min(blinded) > FLOOR
    # 1.25 times the largest ratio ever would now be 1.25 x 30 % and more in most cases.
    assert max(after) < 0.1
    assert sum(after) / sum(before) < 1.3
    assert thresholds(run(0.01), run(0.1, pairs=2))[1] > 0.1
    # The order in which runs are stored is of no consequence.
    assert thresholds(disturbed, calm) == thresholds(calm, disturbed)


def test_few_ratios_of_a_case_say_little_and_many_say_much():
    once, often = (thresholds(run(0.02, pairs, noisy=(7,)))[0] for pairs in (1, 24))
    others = [threshold for size, threshold in enumerate(often) if size != 7]
    assert often[7] > 5 * max(others)
    assert 1.3 < once[7] / sorted(once)[len(SIZES) // 2] < 1.6


def test_a_case_with_four_ratios_counts_as_much_as_its_stage():
    rates = run(0.02, pairs=4, noisy=(7,))
    logs = [[abs(math.log(ratio)) for ratio in noise.ratios] for noise in rates.noise]
    usual = statistics.median_low(map(statistics.median, zip(*logs, strict=True)))
    own, of_stage = thresholds(rates)
    relative = statistics.median_low(logs[7]) / usual
    assert math.log1p(own[7]) == pytest.approx(math.log1p(of_stage) * math.sqrt(relative))


def test_a_stage_with_few_cases_and_a_machine_without_any_say_nothing():
    assert thresholds(run(0.5, sizes=range(9)))[1] == 0
    assert thresholds() == ([0.0] * len(SIZES), 0.0)


@pytest.mark.parametrize("ratio", [0.0, float("inf"), float("nan"), -1.0])
def test_what_is_no_ratio_is_left_out(ratio):
    odd = run(0.02)
    odd.noise[3].ratios.append(ratio)
    assert thresholds(odd) == thresholds(run(0.02))
