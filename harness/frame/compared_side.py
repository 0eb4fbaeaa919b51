"""One side of a comparison: what all processes of one backend found out about one case."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from harness.records.schema import Record
from harness.sides.registry import SIDES
from harness.stages.registry import values_ns


class ComparedSide:
    """The records of one backend, case and number of threads, one or two per process.

    A baseline with a kernel cache has two: with the cache cold, and warm.
    """

    def __init__(self, backend: str, records: Sequence[Record]) -> None:
        self.backend = backend
        self.records = records
        self.measured = [
            (record, record.comparison, values_ns(record.stages))
            for record in records
            if record.comparison and "slope" in values_ns(record.stages)
        ]
        """Those with a time, with what was found out and the value of each stage in ns."""
        self.labels = list(dict.fromkeys(label for _, c, _ in self.measured for label in c.labels))
        self.dtype = next((c.dtypes[0] for _, c, _ in self.measured if c.dtypes), "")

    def seconds(self, stage: str) -> list[float]:
        """Return the value of a stage in each process that measured the case."""
        return [ns[stage] / 1e9 for _, _, ns in self.measured if stage in ns]

    def compile_s(self, cache: str) -> float:
        """Return what is paid before calls cost what they cost ever after: median, NaN if unknown.

        Args:
            cache: `cold` or `warm`: the persistent cache, or the baseline's own kernel cache. What
                has none pays the same in both. XLA: trace + lower + compile, or load where the
                cache is warm. Baselines: the first call less the latency of a later one.
        """
        if self.backend in SIDES and SIDES[self.backend].ahead_of_time:
            steps = ("trace", "lower", "compile" if cache == "cold" else "load")
            return median(
                [
                    sum(ns[s] for s in steps) / 1e9
                    for _, _, ns in self.measured
                    if ns.keys() >= {*steps}
                ]
            )
        own = any(record.scenario == cache for record, _, _ in self.measured)
        return median(
            [
                max(ns["first_call"] - ns["latency"], 0.0) / 1e9
                for record, _, ns in self.measured
                if record.scenario == (cache if own else "off")
                and ns.keys() >= {"first_call", "latency"}
            ]
        )

    def known(self, name: str) -> float:
        """Return a field of :class:`Comparison` that is one number, NaN where nobody knows it.

        It is the median of the processes that know it.
        """
        values = [getattr(comparison, name) for _, comparison, _ in self.measured]
        return median([float(value) for value in values if value is not None])

    def fact(self, name: str) -> float:
        """Return a fact of the program, NaN where no process knows it or two contradict."""
        values = {getattr(record.facts, name) for record in self.records if record.facts} - {None}
        return float(values.pop()) if len(values) == 1 else math.nan

    def counted(self, name: str) -> float:
        """Return a fact of XLA's cost analysis, NaN for a loop, whose body it counts once."""
        return math.nan if self.fact("while_loops") > 0 else self.fact(name)

    def obstacles(self) -> list[str]:
        """Return why no ratio can be made of this side; nothing if one can."""
        if not self.measured:
            reasons = Counter(f"{r.status}: {r.reason}" for r in self.records)
            return [reasons.most_common(1)[0][0] if reasons else "was not measured"]
        wrong = [comparison for _, comparison, _ in self.measured if not comparison.comparable]
        reasons = Counter(reason for one in wrong for reason in one.reasons or ["not comparable"])
        some = f"{len(wrong)} of {len(self.measured)} processes: "
        return [(some if len(wrong) < len(self.measured) else "") + reason for reason in reasons]

    def losses(self) -> list[str]:
        """Return what a number that there is leaves out: processes that failed."""
        failed = [r for r in self.records if r.status == "failed"]
        if not failed or not self.measured:
            return []
        reason = Counter(record.reason for record in failed).most_common(1)[0][0]
        return [f"{len(failed)} of {len(self.records)} processes failed: {reason}"]


def median(values: Sequence[float]) -> float:
    """Return the median, NaN of no values."""
    return statistics.median(values) if values else math.nan
