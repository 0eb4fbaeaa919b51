"""The smallest effect that counts follows what identical arms of the machine show, both ways."""

from __future__ import annotations

import random

import pytest

from harness.stages import registry
from harness.verdicts.error_rates import SCHEMA, ErrorRates, Noise, Rate, scatter_of
from harness.verdicts.pairs import CASE, axes_key

SIZES = range(20)
FLOOR = registry.effect("compile")


def run(scatter, pairs=1, seed=0, noisy=(), sizes=SIZES):
    """Return what `harness aa` stores of a stage of cases that scatter alike, but for `noisy`."""
    rng, none = random.Random(f"{seed}{scatter}"), Rate(0, 1, 0.0, 1.0)
    noise = [
        Noise(
            *("family.Work", "1", {"size": size}, "cpu", "forward", "", "off", "compile"),
            [rng.lognormvariate(0, scatter * (5 if size in noisy else 1)) for _ in range(pairs)],
        )
        for size in sizes
    ]
    return ErrorRates(SCHEMA, "box", "e", "c", 1, "default", pairs, none, {}, none, noise, [])


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
    # The order in which runs are stored is of no consequence.
    assert thresholds(disturbed, calm) == thresholds(calm, disturbed)


def test_thresholds_rise_and_fall_with_what_is_measured_next():
    noisy, calm = run(0.1, pairs=2), run(0.01, pairs=5, seed=3)
    assert thresholds(calm)[1] < thresholds(calm, noisy)[1] or max(thresholds(calm)[0]) < 0.03
    risen, fallen = thresholds(run(0.01), noisy)[1], thresholds(noisy, calm)[1]
    assert risen > 0.1
    assert fallen < 0.05


def test_few_ratios_of_a_case_say_little_and_many_say_much():
    once, often = (thresholds(run(0.02, pairs, noisy=(7,)))[0] for pairs in (1, 24))
    others = [threshold for size, threshold in enumerate(often) if size != 7]
    assert often[7] > 2 * max(others)
    assert once[7] < 1.6 * sorted(once)[len(SIZES) // 2]


def test_a_stage_with_few_cases_and_a_machine_without_any_say_nothing():
    assert thresholds(run(0.5, sizes=range(9)))[1] == 0
    assert thresholds() == ([0.0] * len(SIZES), 0.0)


@pytest.mark.parametrize("ratio", [0.0, float("inf"), float("nan"), -1.0])
def test_what_is_no_ratio_is_left_out(ratio):
    odd = run(0.02)
    odd.noise[3].ratios.append(ratio)
    assert thresholds(odd) == thresholds(run(0.02))
