"""Which ratios count, at the very edge of what counts."""

import numpy as np

from harness.verdicts.statistics import counting


def test_a_ratio_of_just_the_effect_counts_in_both_directions():
    effect = np.full(5, 0.1)
    ratios = np.array([1 + 0.1, 1 / (1 + 0.1), 1.0999, 0.9092, np.nan])
    assert counting(ratios, effect).tolist() == [True, True, False, False, False]
