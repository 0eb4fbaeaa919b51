"""How the times of many calls were distributed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec


class Distribution(msgspec.Struct):
    """The times of the calls that one process timed, each by itself."""

    calls: int
    """How many there were."""
    least_ns: float
    """The shortest."""
    p10_ns: float
    """A tenth of the calls took no longer."""
    p50_ns: float
    """The median."""
    p90_ns: float
    """A tenth of the calls took no less."""

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
        return cls(
            calls=len(ordered),
            least_ns=round(ordered[0], 1),
            p10_ns=round(tenths[0], 1),
            p50_ns=round(tenths[4], 1),
            p90_ns=round(tenths[8], 1),
        )
