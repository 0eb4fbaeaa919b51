"""Distributions of calls: exact quantiles, and bins that add up over processes."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.distribution import Distribution, bin_of, edge_ns, merged

TIMES = st.lists(st.floats(1, 1e12), min_size=1, max_size=200)


@given(TIMES)
def test_quantiles_are_those_of_the_times_and_every_time_is_in_its_bin(times):
    found = Distribution.of(times)
    quantiles = (found.p10_ns, found.p50_ns, found.p90_ns)
    assert quantiles == pytest.approx(np.quantile(times, [0.1, 0.5, 0.9]), rel=1e-9, abs=0.06)
    assert (found.calls, found.least_ns) == (len(times), pytest.approx(min(times), abs=0.06))
    assert sum(found.counts) == len(times)
    assert 0 not in (found.counts[0], found.counts[-1])
    edges = [edge_ns(found.first + at) for at in range(len(found.counts) + 1)]
    # A time at an edge may be on either side of it, by the rounding of the logarithm.
    counts, _ = np.histogram(times, [edge * (1 - 1e-12) for edge in edges])
    assert np.abs(np.cumsum(counts) - np.cumsum(found.counts)).max() <= times.count(min(times))


@given(TIMES, TIMES)
def test_histograms_of_processes_add_up_to_that_of_all_calls(one, other):
    both = Distribution.of(one + other)
    counts = merged([Distribution.of(one), Distribution.of(other)])
    assert list(counts.values()) == both.counts
    assert list(counts) == list(range(both.first, both.first + len(both.counts)))


def test_edges_are_the_documented_ones():
    assert [edge_ns(16 * octave) for octave in (0, 1, 10)] == [1, 2, 1024]
    assert [bin_of(time_ns) for time_ns in (0, 0.5, 1, 2, 1023, 1024, 1100)] == [
        *(0, 0, 0, 16, 159, 160, 161)
    ]
    assert merged([]) == {}


def test_a_distribution_is_small_on_disk():
    rng = np.random.default_rng(0)
    times = np.concatenate([rng.lognormal(10, 0.3, 5_000), [1e8]])  # 22 µs, and one stall of 100 ms
    assert len(msgspec.json.encode(Distribution.of(times.tolist()))) < 800
