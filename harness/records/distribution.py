"""How the times of many calls were distributed: three quantiles, and a histogram that adds up."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

BINS_PER_OCTAVE = 16
"""Bin k holds times t with 2 ** (k / 16) <= t < 2 ** ((k + 1) / 16) nanoseconds, in every record:
a bin is 4.4 % wide. Bin 0 also holds what is shorter than a nanosecond."""


class Distribution(msgspec.Struct):
    """The times of the calls that one process timed, each by itself."""

    calls: int
    """How many there were."""
    least_ns: float
    """The shortest."""
    p10_ns: float
    """A tenth of the calls took no longer; of the times themselves, not of the bins."""
    p50_ns: float
    """The median."""
    p90_ns: float
    """A tenth of the calls took no less."""
    first: int
    """The bin of the least time."""
    counts: list[int]
    """Calls in that bin and in those that follow it, up to the bin of the longest time."""

    @classmethod
    def of(cls, times_ns: Sequence[float]) -> Distribution:
        """Return the distribution of one time or more.

        Quantiles are interpolated linearly between the order statistics, the least time being the
        quantile 0 and the longest the quantile 1 (Hyndman and Fan, type 7).
        """
        ordered = sorted(times_ns)
        tenths = [ordered[0]] * 9
        if len(ordered) > 1:
            tenths = statistics.quantiles(ordered, n=10, method="inclusive")
        bins = Counter(map(bin_of, ordered))
        first, last = bin_of(ordered[0]), bin_of(ordered[-1])
        return cls(
            calls=len(ordered),
            least_ns=round(ordered[0], 1),
            p10_ns=round(tenths[0], 1),
            p50_ns=round(tenths[4], 1),
            p90_ns=round(tenths[8], 1),
            first=first,
            counts=[bins[number] for number in range(first, last + 1)],
        )


def bin_of(time_ns: float) -> int:
    """Return the bin of a time."""
    return math.floor(BINS_PER_OCTAVE * math.log2(max(time_ns, 1.0)))


def edge_ns(number: int) -> float:
    """Return the lower edge of a bin, in nanoseconds."""
    return float(2 ** (number / BINS_PER_OCTAVE))


def merged(parts: Iterable[Distribution]) -> dict[int, int]:
    """Return how many calls of all parts fell into each bin, from the least to the last."""
    bins: Counter[int] = Counter()
    for part in parts:
        bins.update({part.first + at: count for at, count in enumerate(part.counts)})
    return {number: bins[number] for number in range(min(bins), max(bins) + 1)} if bins else {}
