"""The ceilings of a machine, as its own sweep measured them: bytes and operations per second.

A workload whose name ends in `Ceilings` measures them. Its axis `kind` is `copy` (2N bytes),
`triad` (3N bytes), or begins with `gemm` (a product of two square matrices, 2 n^3 operations).
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Set
from typing import NamedTuple

from harness.frame.compared_side import RESIDENT
from harness.records.schema import Record
from harness.stages.registry import values_ns


class Place(NamedTuple):
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


def place_of(record: Record, resident: bool) -> Place:
    """Return where a record of a comparison was taken."""
    threads = record.comparison.threads if record.comparison else ""
    return Place(record.machine, record.env, record.target, threads, resident)


class Ceilings:
    """The best rates that any backend reached, by place and sweep.

    What stays in a cache has a ceiling only where the streams of the ceilings, too, stayed in one:
    on a virtual machine that reports the cache of the whole processor, nothing ever leaves it.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        times: dict[tuple[str, str], list[float]] = defaultdict(list)
        first: dict[tuple[str, str], Record] = {}
        for record in filter(is_ceiling, records):
            slope_ns = values_ns(record.stages).get("slope")
            side = record.comparison
            if side is None or not slope_ns or not side.comparable:
                continue
            key = (record.key, record.sweep)
            times[key].append(slope_ns / 1e9)
            first.setdefault(key, record)
        self._bandwidth: dict[tuple[Place, str], float] = {}
        self._flop_rate: dict[tuple[Place, str, str, str], float] = {}
        """By place, sweep, dtype and precision."""
        for key, record in first.items():
            self._keep(record, statistics.median(times[key]))

    def _keep(self, record: Record, time_s: float) -> None:
        side = record.comparison
        if side is None:
            return
        kind = record.axes.get("kind")
        place = place_of(record, RESIDENT in side.labels)
        if kind in ("copy", "triad"):
            at = (place, record.sweep)
            rate = side.least_bytes / time_s
            self._bandwidth[at] = max(rate, self._bandwidth.get(at, 0.0))
        elif str(kind).startswith("gemm") and side.dtypes and side.output_bytes:
            dtype = side.dtypes[0]
            where = (place, record.sweep, dtype, record.precision)
            rate = 2 * (side.output_bytes / _item_bytes(dtype)) ** 1.5 / time_s
            self._flop_rate[where] = max(rate, self._flop_rate.get(where, 0.0))

    def bandwidth(self, place: Place, sweeps: Set[str]) -> float:
        """Return bytes per second: the best of copy and triad in these sweeps, or NaN."""
        if place.resident and any(
            (place._replace(resident=False), sweep) in self._bandwidth for sweep in sweeps
        ):
            return math.nan  # memory's ceiling is known, and says nothing of a cache
        found = [self._bandwidth.get((place, sweep), 0.0) for sweep in sweeps]
        return max(found, default=0.0) or math.nan

    def flop_rate(self, place: Place, sweeps: Set[str], dtype: str, precision: str) -> float:
        """Return operations per second of `gemm` at a dtype and precision, or NaN.

        A case that leaves the precision to JAX is held against the fastest. Arithmetic does not ask
        where its operands come from.
        """
        found = [
            rate
            for (at, sweep, kind, how), rate in self._flop_rate.items()
            if (at._replace(resident=place.resident), kind) == (place, dtype)
            and sweep in sweeps
            and precision in (how, "")
        ]
        return max(found, default=math.nan)


def _item_bytes(dtype: str) -> float:
    """Return the size of an element; NumPy need not know `bfloat16`."""
    bits = re.search(r"\d+", dtype)
    return int(bits.group()) / 8 if bits else math.nan
