"""Distributions of calls: exact quantiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.distribution import Distribution


@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=200))
def test_quantiles_are_those_of_the_times(times):
    calls = Distribution.of(times)
    quantiles = (calls.least_ns, calls.p10_ns, calls.p50_ns, calls.p90_ns)
    assert quantiles == pytest.approx(np.quantile(times, [0, 0.1, 0.5, 0.9]), rel=1e-9, abs=0.06)
    assert calls.calls == len(times)
