"""The roofline: the rates that a machine reaches in a sweep, and what they allow a program.

S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52 (2009): no program can be faster than its bytes at the bandwidth
that the machine reaches, nor than its operations at the rate it reaches. Ceilings are measured in
the same sweep, not read off a data sheet: by a workload whose name ends in `Ceilings`, with an axis
`kind` that is `copy` (2N bytes), `triad` (3N bytes), or begins with `gemm` (a product of two square
matrices, 2 n^3 operations).
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Set
from typing import NamedTuple

from harness.records.schema import Record
from harness.stages.registry import values_ns

RESIDENT = "cache-resident"
"""The label of a case whose working set stays in a cache: its bytes never reach memory."""

FASTER_THAN_POSSIBLE = 1.05
"""A greater fraction of the roofline is an error: a cache served the bytes, or the work was not
done, or the model is wrong. Ceilings themselves are known to a few percent."""

SUSPICIOUSLY_SLOW = 0.02
"""A smaller fraction is no matter of tuning: a back end has such a case wrong now and then."""


class MeasuredAt(NamedTuple):
    """What ceilings hold for; they are measured anew in every sweep."""

    machine: str
    env: str
    target: str
    threads: str
    resident: bool = False
    """Whether the inputs stayed in a cache: like is held against like."""


def is_ceiling(record: Record) -> bool:
    """Tell whether a record measures the machine and not a workload."""
    return record.workload.endswith("Ceilings")


def place_of(record: Record, resident: bool) -> MeasuredAt:
    """Return where a record of a comparison was taken."""
    threads = record.comparison.threads if record.comparison else ""
    return MeasuredAt(record.machine, record.env, record.target, threads, resident)


class BestRates:
    """The best rates that any backend reached, by place and sweep.

    What stays in a cache has a ceiling only where the streams of the ceilings, too, stayed in one:
    on a virtual machine that reports the cache of the whole processor, nothing ever leaves it.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self._rates: dict[tuple[MeasuredAt, str, str, str], float] = defaultdict(float)
        """By place, sweep, dtype and precision; by `bytes` and "" those of memory."""
        processes: dict[tuple[str, str], list[Record]] = defaultdict(list)
        for record in filter(is_ceiling, records):
            side = record.comparison
            if side and side.comparable and values_ns(record.stages).get("slope"):
                processes[record.key, record.sweep].append(record)
        for same in processes.values():
            times_s = [values_ns(record.stages)["slope"] / 1e9 for record in same]
            self._keep(same[0], statistics.median(times_s))

    def _keep(self, record: Record, time_s: float) -> None:
        side = record.comparison
        assert side is not None
        kind, dtype, precision = str(record.axes.get("kind")), "bytes", ""
        if kind in ("copy", "triad"):
            rate = side.least_bytes / time_s
        elif kind.startswith("gemm") and side.dtypes and side.output_bytes:
            dtype, precision = side.dtypes[0], record.precision
            bits = re.search(r"\d+", dtype)  # NumPy need not know `bfloat16`
            item_bytes = int(bits.group()) / 8 if bits else math.nan
            rate = 2 * (side.output_bytes / item_bytes) ** 1.5 / time_s
        else:
            return
        place = place_of(record, RESIDENT in side.labels), record.sweep, dtype, precision
        self._rates[place] = max(rate, self._rates[place])

    def bandwidth(self, place: MeasuredAt, sweeps: Set[str]) -> float:
        """Return bytes per second: the best of copy and triad in these sweeps, or NaN."""
        memory = place._replace(resident=False)
        if place.resident and any((memory, sweep, "bytes", "") in self._rates for sweep in sweeps):
            return math.nan  # memory's ceiling is known, and says nothing of a cache
        rates = [self._rates.get((place, sweep, "bytes", ""), 0.0) for sweep in sweeps]
        return max(rates, default=0.0) or math.nan

    def flop_rate(self, place: MeasuredAt, sweeps: Set[str], dtype: str, precision: str) -> float:
        """Return operations per second of `gemm` at a dtype and precision, or NaN.

        A case that leaves the precision to JAX is held against the fastest. Arithmetic does not ask
        where its operands come from.
        """
        rates = [
            rate
            for (at, sweep, kind, how), rate in self._rates.items()
            if (at._replace(resident=place.resident), kind) == (place, dtype)
            and sweep in sweeps
            and precision in (how, "")
        ]
        return max(rates, default=math.nan)


def roofline_s(least_bytes: float, flops: float, bandwidth: float, flop_rate: float) -> float:
    """Return the least seconds that a computation can take, NaN without a ceiling for its bytes.

    Args:
        least_bytes: what any program must move: arguments once, results once.
        flops: floating-point operations; NaN or 0 where they are not known.
        bandwidth: the ceiling, bytes per second.
        flop_rate: the ceiling, operations per second; NaN where it was not measured, and then
            only the bytes count.
    """
    if not bandwidth > 0:
        return math.nan
    compute_s = flops / flop_rate if flops > 0 and flop_rate > 0 else 0.0
    return max(least_bytes / bandwidth, compute_s)


def fraction(roofline: float, took_s: float) -> float:
    """Return how much of the roofline a time reaches: 1 is all of it; NaN if either is unknown."""
    return roofline / took_s if roofline > 0 and took_s > 0 else math.nan
