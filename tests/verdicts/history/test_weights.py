"""What a point counts: less, the wider its interval; never more than twice the usual."""

import numpy as np
import pandas as pd
import pytest

from harness.verdicts.history.points import weights


def points(widths):
    count = len(widths)
    return pd.DataFrame(
        {
            "series": [0] * count,
            "piece": [0] * count,
            "low": [1.0] * count,
            "high": [1.0 + width for width in widths],
        }
    )


def test_a_wider_interval_counts_less_and_a_narrow_one_at_most_twice():
    found = weights(points([1.0, 1.0, 3.0, 1e-9]))
    assert found / found[0] == pytest.approx([1, 1, 0.5, 2])


def test_without_an_interval_there_is_no_weight():
    found = weights(points([1.0, np.nan, 1.0]))
    assert np.isnan(found[1])
    assert found[0] == found[2]


def test_equal_samples_have_no_weight_and_do_not_divide_by_nothing():
    assert np.isnan(weights(points([0.0, 0.0]))).all()
