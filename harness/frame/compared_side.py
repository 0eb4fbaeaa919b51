"""One side of a comparison: what all processes of one backend found out about one case."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from harness.program.facts import Facts
from harness.records.comparison import Comparison
from harness.records.schema import Record
from harness.sides.registry import SIDES
from harness.stages.registry import values_ns

RESIDENT = "cache-resident"
"""The label of a case whose working set stays in a cache: its bytes never reach memory."""


class ComparedSide:
    """The records of one backend, case and number of threads, one or two per process.

    A baseline with a kernel cache has two: with the cache cold, and warm.
    """

    def __init__(self, backend: str, records: Sequence[Record]) -> None:
        self.backend = backend
        self.records = records
        self.measured = [r for r in records if r.comparison and "slope" in values_ns(r.stages)]
        self.sweeps = {record.sweep for record in records}

    def seconds(self, stage: str) -> list[float]:
        """Return the value of a stage in each process that measured the case."""
        found = (values_ns(record.stages).get(stage) for record in self.measured)
        return [value / 1e9 for value in found if value is not None]

    def median_s(self, stage: str) -> float:
        """Return the median over processes, NaN where the stage was not measured."""
        return _median(self.seconds(stage))

    def compile_s(self, cache: str) -> float:
        """Return what is paid before calls cost what they cost ever after: median, NaN if unknown.

        Args:
            cache: `cold` or `warm`: the persistent cache, or the baseline's own kernel cache. What
                has none pays the same in both. XLA: trace + lower + compile, or load where the
                cache is warm. Baselines: the first call less the latency of a later one.
        """
        if self.backend in SIDES and SIDES[self.backend].ahead_of_time:
            steps = ("trace", "lower", "compile" if cache == "cold" else "load")
            return _median(_sums(self.measured, lambda ns: [ns.get(step) for step in steps]))
        own = [r for r in self.measured if r.scenario == cache]
        records = own or [r for r in self.measured if r.scenario == "off"]
        costs = _sums(
            records,
            lambda ns: [ns.get("first_call"), -ns["latency"] if "latency" in ns else None],
        )
        return _median([max(cost, 0.0) for cost in costs])

    def comparison(self, name: str) -> Any:
        """Return a field of :class:`Comparison` that is one number; None where nobody knows it.

        It is the median of the processes that know it.
        """
        values = [getattr(one, name) for one in self._comparisons()]
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    def dtype(self) -> str:
        """Return the dtype of the first output, or ""."""
        return next((one.dtypes[0] for one in self._comparisons() if one.dtypes), "")

    def fact(self, name: str) -> float:
        """Return a fact of the program, NaN where no process knows it or two contradict."""
        facts: list[Facts] = [record.facts for record in self.records if record.facts]
        values = {getattr(one, name) for one in facts} - {None}
        return float(values.pop()) if len(values) == 1 else math.nan

    def labels(self) -> list[str]:
        """Return the labels that any process gave."""
        return list(dict.fromkeys(label for one in self._comparisons() for label in one.labels))

    def obstacles(self) -> list[str]:
        """Return why no ratio can be made of this side; nothing if one can."""
        if not self.measured:
            reasons = Counter(f"{r.status}: {r.reason}" for r in self.records)
            return [reasons.most_common(1)[0][0] if reasons else "was not measured"]
        wrong = [one for one in self._comparisons() if not one.comparable]
        if not wrong:
            return []
        reasons = Counter(reason for one in wrong for reason in one.reasons or ["not comparable"])
        count = f"{len(wrong)} of {len(self.measured)} processes: "
        return [(count if len(wrong) < len(self.measured) else "") + reason for reason in reasons]

    def losses(self) -> list[str]:
        """Return what a number that there is leaves out: processes that failed."""
        failed = [r for r in self.records if r.status == "failed"]
        if not failed or not self.measured:
            return []
        reason = Counter(record.reason for record in failed).most_common(1)[0][0]
        return [f"{len(failed)} of {len(self.records)} processes failed: {reason}"]

    def _comparisons(self) -> list[Comparison]:
        return [record.comparison for record in self.measured if record.comparison]


def _sums(
    records: Iterable[Record], parts: Callable[[dict[str, float]], list[float | None]]
) -> list[float]:
    """Return the sum of parts in seconds, of each record that has them all."""
    found = []
    for record in records:
        values = [value for value in parts(values_ns(record.stages))]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            found.append(sum(known) / 1e9)
    return found


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan
