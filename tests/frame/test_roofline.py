import math

import pytest

from harness.frame.against import break_even
from harness.frame.roofline import fraction, roofline_s

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("least_bytes", "flops", "bandwidth", "flop_rate", "seconds"),
    [
        (134e6, 16e6, 4.3e12, 60e12, 134e6 / 4.3e12),  # bytes are the limit
        (12e6, 2e12, 4e12, 50e12, 0.04),  # operations are
        (100, NAN, 10, 5, 10),  # unknown operations leave the bytes
        (100, 500, 10, NAN, 10),
        (100, 500, 0, 5, NAN),
        (100, 500, NAN, 5, NAN),
        (0, 500, 10, 5, 100),
    ],
)
def test_the_roofline_is_the_slower_of_bytes_and_operations(
    least_bytes, flops, bandwidth, flop_rate, seconds
):
    found = roofline_s(least_bytes, flops, bandwidth, flop_rate)
    assert found == pytest.approx(seconds, nan_ok=True)


def test_the_fraction_is_of_the_time_taken():
    assert fraction(1.0, 4.0) == 0.25
    assert fraction(2.0, 1.0) == 2.0
    for unknown in (fraction(NAN, 1.0), fraction(1.0, NAN), fraction(0.0, 1.0), fraction(1.0, 0)):
        assert math.isnan(unknown)


@pytest.mark.parametrize(
    ("one", "other", "calls"),
    [
        ((100, 1), (10, 10), 10),  # 90 more at first, 9 less each time
        ((100, 1), (10, 9), 12),  # 90 / 8 is 11.25: the twelfth call pays
        ((100, 1), (100, 2), 0),  # no dearer from the start
        ((5, 1), (10, 2), 0),
        ((100, 2), (10, 1), INF),  # slower: never
        ((5, 2), (10, 1), INF),  # cheaper at first and slower: it does not last
        ((100, 1), (10, 1), INF),
        ((10, 1), (10, 1), 0),
        ((NAN, 1), (10, 2), NAN),
        ((100, 1), (10, NAN), NAN),
    ],
)
def test_the_break_even_is_the_call_that_pays(one, other, calls):
    found = break_even(*one, *other)
    assert found == pytest.approx(calls, nan_ok=True)
    if math.isfinite(calls):

        def cost(side, n):
            return side[0] + n * side[1]

        assert cost(one, found) <= cost(other, found)
        if found:
            assert cost(one, found - 1) > cost(other, found - 1)
