"""Compare XLA with the baselines of workloads: a row per case, threads and baseline."""

from __future__ import annotations

import math
import os
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.baselines.registry import REFERENCE, SIDES
from harness.frame import roofline
from harness.frame.cases import origin_of
from harness.frame.columns import order_of
from harness.frame.frame import INSTRUMENTS, ORIGIN, long_frame
from harness.frame.load import latest_records
from harness.frame.ratios import Ratio, ratio_of
from harness.records.schema import Record, plain_axes
from harness.stages.registry import values_ns

CASE = ("workload", "version", "target", "transform", "precision")
"""Columns that say which case it is, besides its axes."""

NUMBERS = (
    "xla_s", "baseline_s", "ratio", "ratio_low", "ratio_high", "n_xla", "n_baseline",
    "xla_latency_s", "baseline_latency_s", "xla_dispatch_s", "baseline_dispatch_s",
    "xla_launches", "baseline_launches", "least_bytes", "xla_traffic", "baseline_traffic",
    "xla_bandwidth", "baseline_bandwidth", "flops", "ceiling_bandwidth", "ceiling_flop_rate",
    "roofline_s", "xla_fraction", "baseline_fraction", "xla_compile_cold_s",
    "xla_compile_warm_s", "baseline_compile_cold_s", "baseline_compile_warm_s",
    "break_even_cold", "break_even_warm", "xla_error", "baseline_error",
)  # fmt: skip
"""Columns of float64."""

COLUMNS = (*ORIGIN, *CASE, "threads", "baseline", "verdict", *NUMBERS, "labels", "reasons")
"""Columns that every frame of comparisons has; one per axis stands behind `version`."""


def against_baseline(source: str | os.PathLike[str] | Iterable[Record] = "results") -> pd.DataFrame:
    """Return XLA beside each baseline, losses as plainly as wins.

    Args:
        source: a results tree, one machine's folder in it or one file of records; or records.

    Returns:
        `machine`, `commit`, `dirty`, `env`, `effort`, `night`, `workload`, `version`, a column per
        axis, `target`, `transform`, `precision`, `threads`, `baseline` (its backend), `verdict`:
        `XLA faster`, `baseline faster`, `unsure` (the interval holds 1, or there is none), or `no
        ratio: ` and why. Then float64, NaN where something is not known:

        - `xla_s`, `baseline_s`: seconds per call, the median over processes of the slope of many
          calls; `..._latency_s` of one call waited for; `..._dispatch_s` until a call returns.
        - `ratio`: baseline_s / xla_s, above 1 where XLA is faster; `ratio_low`, `ratio_high`, its
          95 % interval (:func:`harness.frame.ratios.ratio_of`) from `n_xla` and `n_baseline`
          processes. NaN unless both sides passed every check.
        - `xla_launches`: as the device counted them, else by the facts of the program;
          `baseline_launches`: as the device counted them, else its array operations.
        - `least_bytes`: what any program must move; `..._traffic`: bytes moved, in multiples of it,
          by XLA's cost analysis and by the baseline's operations; `..._bandwidth`: least_bytes /
          time. `flops`: XLA's cost analysis, NaN for programs with loops, whose bodies it counts
          once, or with custom calls, which it does not count.
        - `ceiling_bandwidth`, `ceiling_flop_rate`: bytes/s and flop/s that the same sweep reached;
          `roofline_s` and `..._fraction`: :mod:`harness.frame.roofline`.
        - `..._compile_cold_s`, `..._compile_warm_s`: what is paid once
          (:meth:`ComparedSide.compile_s`); `break_even_cold`,
          `break_even_warm`: after how many calls XLA has cost no more, infinite for never.
        - `xla_error`, `baseline_error`: relative L2 distance to the float64 reference.

        `labels` and `reasons` are text, parts joined by `; `.

    Raises:
        UsageError: there is no such path.
    """
    if isinstance(source, str | os.PathLike):
        source = [one for case in latest_records(Path(source)).values() for one in case.values()]
    compared = [r for r in source if r.comparison and r.workload not in INSTRUMENTS]
    ceilings = roofline.BestRates(compared)
    rows: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for sides in _cases(record for record in compared if not roofline.is_ceiling(record)):
        xla = sides.pop(REFERENCE, ComparedSide(REFERENCE, []))
        for baseline in sides.values():
            axes = plain_axes(baseline.records[0].axes)
            rows.append((_row(xla, baseline, ceilings), axes))
    return long_frame(rows, COLUMNS, NUMBERS)


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
            whole = [ns for _, _, ns in self.measured if ns.keys() >= {*steps}]
            return _median([sum(ns[step] for step in steps) / 1e9 for ns in whole])
        own = any(record.scenario == cache for record, _, _ in self.measured)
        taken = [ns for one, _, ns in self.measured if one.scenario == (cache if own else "off")]
        whole = [ns for ns in taken if ns.keys() >= {"first_call", "latency"}]
        return _median([max(ns["first_call"] - ns["latency"], 0.0) / 1e9 for ns in whole])

    def known(self, name: str) -> float:
        """Return a field of :class:`Comparison` that is one number, NaN where nobody knows it.

        It is the median of the processes that know it.
        """
        values = [getattr(comparison, name) for _, comparison, _ in self.measured]
        return _median([float(value) for value in values if value is not None])

    def fact(self, name: str) -> float:
        """Return a fact of the program, NaN where no process knows it or two contradict."""
        values = {getattr(record.facts, name) for record in self.records if record.facts} - {None}
        return float(values.pop()) if len(values) == 1 else math.nan

    def counted(self, name: str) -> float:
        """Return a fact of XLA's cost analysis, NaN where that leaves work out.

        It counts the body of a loop once, and nothing of a custom call.
        """
        hidden = self.fact("while_loops") > 0 or self.fact("custom_calls") > 0
        return math.nan if hidden else self.fact(name)

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


def _cases(records: Iterable[Record]) -> Iterator[dict[str, ComparedSide]]:
    """Yield the sides of each case and number of threads, in the order of tables."""
    cases: dict[tuple[Any, ...], dict[str, list[Record]]] = {}
    for record in records:
        side = record.comparison
        assert side is not None
        own = (getattr(record, name) for name in CASE)
        case = (*origin_of(record).values(), *own, side.threads)
        sides = cases.setdefault((*case, repr(sorted(record.axes.items()))), {})
        sides.setdefault(side.backend, []).append(record)
    in_order = list(SIDES)

    def place(sides: dict[str, list[Record]]) -> tuple[Any, ...]:
        one = next(iter(sides.values()))[0]
        names = ("commit", "dirty", "effort", "env", "workload", "version", "target", "precision")
        threads = one.comparison.threads if one.comparison else ""
        axes = tuple(map(order_of, plain_axes(one.axes).values()))
        texts = (getattr(one, name) for name in names)
        return (one.machine, one.commit_date_ms or 0, *texts, threads != "one", axes)

    for sides in sorted(cases.values(), key=place):
        order = sorted(
            sides, key=lambda name: (in_order.index(name) if name in in_order else 99, name)
        )
        yield {backend: ComparedSide(backend, sides[backend]) for backend in order}


def _row(xla: ComparedSide, baseline: ComparedSide, ceilings: roofline.BestRates) -> dict[str, Any]:
    """Return the row of a case: XLA beside one baseline."""
    one = baseline.records[0]
    least_bytes = _first(*(side.known("least_bytes") or math.nan for side in (xla, baseline)))
    row: dict[str, Any] = origin_of(one) | {name: getattr(one, name) for name in CASE}
    row |= {
        "threads": one.comparison.threads if one.comparison else "",
        "baseline": baseline.backend,
        "xla_launches": _first(xla.known("launches"), xla.fact("launches")),
        "baseline_launches": _first(baseline.known("launches"), baseline.known("operations")),
        "flops": xla.counted("flops"),
        "least_bytes": least_bytes,
        "xla_traffic": xla.counted("bytes_accessed") / least_bytes,
        "baseline_traffic": baseline.known("traffic_bytes") / least_bytes,
    }
    for name, side in (("xla", xla), ("baseline", baseline)):
        took_s = _median(side.seconds("slope"))
        row |= {
            f"{name}_s": took_s,
            f"n_{name}": len(side.seconds("slope")),
            f"{name}_latency_s": _median(side.seconds("latency")),
            f"{name}_dispatch_s": _median(side.seconds("dispatch")),
            f"{name}_bandwidth": least_bytes / took_s,
            f"{name}_compile_cold_s": side.compile_s("cold"),
            f"{name}_compile_warm_s": side.compile_s("warm"),
            f"{name}_error": side.known("error"),
        }
    for cache in ("cold", "warm"):
        paid = [
            (row[f"{side}_compile_{cache}_s"], row[f"{side}_s"]) for side in ("xla", "baseline")
        ]
        row[f"break_even_{cache}"] = break_even(*paid[0], *paid[1])
    labels = [label for label in xla.labels if label in baseline.labels]
    for side, other in ((xla, baseline), (baseline, xla)):
        labels += [f"{side.backend}: {one}" for one in side.labels if one not in other.labels]
    rejected = _hold_against_roofline(row, xla, baseline, ceilings, labels)
    return row | _judged(xla, baseline, rejected) | {"labels": "; ".join(labels)}


def _hold_against_roofline(
    row: dict[str, Any],
    xla: ComparedSide,
    baseline: ComparedSide,
    ceilings: roofline.BestRates,
    labels: list[str],
) -> list[str]:
    """Add the roofline to a row, label what it shows, and return why the row must be rejected."""
    one = baseline.records[0]
    resident = roofline.RESIDENT in (*xla.labels, *baseline.labels)
    place = roofline.place_of(one, resident)
    sweeps = {record.sweep for record in (*xla.records, *baseline.records)}
    bandwidth = ceilings.bandwidth(place, sweeps)
    flop_rate = ceilings.flop_rate(place, sweeps, xla.dtype or baseline.dtype, one.precision)
    least_s = roofline.roofline_s(row["least_bytes"], row["flops"], bandwidth, flop_rate)
    row |= {"ceiling_bandwidth": bandwidth, "ceiling_flop_rate": flop_rate, "roofline_s": least_s}
    rejected = []
    for name, side in (("xla", xla), ("baseline", baseline)):
        reached = roofline.fraction(least_s, row[f"{name}_s"])
        row[f"{name}_fraction"] = reached
        if not resident and reached > roofline.FASTER_THAN_POSSIBLE:
            rejected.append(f"{side.backend}: faster than the roofline: {reached:.0%} of it")
    # Where the host is the limit, or a loop hides its work from the model, XLA is not to blame.
    excused = "host-bound" in xla.labels or xla.fact("while_loops") > 0
    if row["xla_fraction"] < roofline.SUSPICIOUSLY_SLOW and not excused and not resident:
        labels.append("possible back-end regression")
    if math.isnan(bandwidth) and not resident:
        labels.append("no ceilings")
    return rejected


def _judged(xla: ComparedSide, baseline: ComparedSide, rejected: Sequence[str]) -> dict[str, Any]:
    """Return the ratio and the verdict of a row, or why there is none."""
    sides = (xla, baseline)
    obstacles = [f"{side.backend}: {text}" for side in sides for text in side.obstacles()]
    obstacles += rejected
    losses = [f"{side.backend}: {text}" for side in sides for text in side.losses()]
    ratio = Ratio(math.nan)
    if obstacles:
        verdict = "no ratio: " + "; ".join(obstacles)
    else:
        ratio = ratio_of(baseline.seconds("slope"), xla.seconds("slope"))
        verdict = (
            "XLA faster" if ratio.low > 1 else "baseline faster" if ratio.high < 1 else "unsure"
        )
        if math.isnan(ratio.low):
            losses.append("no interval: a side has fewer than 3 processes")
    return {
        "verdict": verdict,
        "ratio": ratio.value,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "reasons": "; ".join([*obstacles, *losses]),
    }


def break_even(
    compile_s: float, call_s: float, other_compile_s: float, other_call_s: float
) -> float:
    """Return after how many calls the one has cost no more than the other, compiling included.

    The least whole n with `compile_s + n call_s <= other_compile_s + n other_call_s`: 0 if it is
    cheaper from the start, infinite if each call is slower (or as slow, and compiling costs more);
    NaN if a time is unknown.
    """
    extra_s, saved_s = compile_s - other_compile_s, other_call_s - call_s
    if math.isnan(extra_s) or math.isnan(saved_s):
        return math.nan
    if saved_s < 0:
        return math.inf
    if extra_s <= 0:
        return 0.0
    return float(math.ceil(extra_s / saved_s)) if saved_s > 0 else math.inf


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan


def _first(*values: float) -> float:
    return next((value for value in values if not math.isnan(value)), math.nan)
