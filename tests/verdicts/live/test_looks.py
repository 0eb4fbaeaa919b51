"""How often a live comparison looks, and how much error each look may make."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from harness.verdicts.live.rounds import next_look, share
from harness.verdicts.statistics import estimates


def looks_of(limit):
    """Return after how many rounds is looked where everything stays open."""
    looks = [0]
    while looks[-1] < limit:
        looks.append(next_look(looks[-1], limit))
    return looks[1:]


@pytest.mark.parametrize(
    ("limit", "looks"),
    [(1, [1]), (4, [4]), (5, [5]), (6, [4, 6]), (8, [4, 8]), (17, [4, 8, 12, 17])],
)
def test_the_first_look_is_after_four_rounds_and_the_last_at_the_limit(limit, looks):
    assert looks_of(limit) == looks


@pytest.mark.parametrize("looks", [[8], [4, 8], [4, 5, 8], [1, 2, 3, 4, 5, 6, 7, 8]])
def test_all_looks_together_may_err_as_often_as_one(looks):
    spent = [share(looks[: n + 1], 8) for n in range(len(looks))]
    assert sum(spent) == pytest.approx(1)
    assert all(a <= b for a, b in itertools.pairwise(spent)) or looks == [4, 5, 8]


def test_looking_at_equal_arms_again_and_again_calls_no_more_of_them_different():
    a, b = np.random.default_rng(11).normal(0, 0.05, (2, 2000, 32))
    ever = {True: np.zeros(2000, bool), False: np.zeros(2000, bool)}
    looks = looks_of(32)
    for number, done in enumerate(looks):
        for corrected in ever:
            part = share(looks[: number + 1], 32) if corrected else 1.0
            found = estimates(a[:, :done], b[:, :done], paired=True, share=part)
            ever[corrected] |= found.p <= 0.05
    assert ever[True].mean() < 0.055
    assert ever[False].mean() > 0.1
