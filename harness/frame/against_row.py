"""One row of a comparison: XLA beside one baseline of a case, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from harness.frame.ceilings import Ceilings, place_of
from harness.frame.compared_side import RESIDENT, ComparedSide
from harness.frame.ratios import Ratio, ratio_of
from harness.frame.roofline import (
    FASTER_THAN_POSSIBLE,
    SUSPICIOUSLY_SLOW,
    break_even,
    fraction,
    roofline_s,
)

ORIGIN = ("machine", "commit", "dirty", "env", "effort", "night")
"""Columns that say where a row comes from."""

CASE = ("workload", "version", "target", "transform", "precision")
"""Columns that say which case it is, besides its axes."""

LABELS = {
    RESIDENT: "the inputs stay in a cache: the share of the roofline, if any, is of what such a "
    "cache gave the largest arrays, and may exceed 1",
    "host-bound": "the time is that of asking for the work, not of doing it",
    "disturbed": "something else used the machine while it was measured",
    "fuse-fallback": "cupy.fuse could not fuse it, and fell back on its slow path",
    "faster than the roofline": "a cache served the bytes, or not all of the work was done",
    "possible back-end regression": "XLA reaches less than 2 % of the roofline",
    "no ceilings": "no Ceilings workload was measured in the same sweep, so there is no roofline",
}
"""What the labels of a row mean, and the reason for which it may be rejected."""


def row_of(xla: ComparedSide, baseline: ComparedSide, ceilings: Ceilings) -> dict[str, Any]:
    """Return the row of a case: XLA beside one baseline; see :func:`harness.against_baseline`."""
    one = baseline.records[0]
    took = {"xla": xla.median_s("slope"), "baseline": baseline.median_s("slope")}
    row: dict[str, Any] = {name: getattr(one, name) for name in (*ORIGIN, *CASE)}
    row |= {
        "threads": one.comparison.threads if one.comparison else "",
        "baseline": baseline.backend,
        "xla_launches": _first(xla.comparison("launches"), xla.fact("launches")),
        "baseline_launches": _first(
            baseline.comparison("launches"), baseline.comparison("operations")
        ),
        "flops": _counted(xla, "flops"),
        "least_bytes": _first(_least_bytes(xla), _least_bytes(baseline)),
    }
    for name, side in (("xla", xla), ("baseline", baseline)):
        row |= {
            f"{name}_s": took[name],
            f"n_{name}": len(side.seconds("slope")),
            f"{name}_latency_s": side.median_s("latency"),
            f"{name}_dispatch_s": side.median_s("dispatch"),
            f"{name}_bandwidth": row["least_bytes"] / took[name],
            f"{name}_compile_cold_s": side.compile_s("cold"),
            f"{name}_compile_warm_s": side.compile_s("warm"),
            f"{name}_error": _first(side.comparison("error")),
        }
    row["xla_traffic"] = _share(_counted(xla, "bytes_accessed"), row["least_bytes"])
    row["baseline_traffic"] = _share(
        _first(baseline.comparison("traffic_bytes")), row["least_bytes"]
    )
    for cache in ("cold", "warm"):
        row[f"break_even_{cache}"] = break_even(
            row[f"xla_compile_{cache}_s"],
            took["xla"],
            row[f"baseline_compile_{cache}_s"],
            took["baseline"],
        )
    labels = _labels(xla, baseline)
    rejected = _hold_against_roofline(row, xla, baseline, ceilings, labels)
    _judge(row, xla, baseline, rejected)
    row["labels"] = "; ".join(labels)
    return row


def _hold_against_roofline(
    row: dict[str, Any],
    xla: ComparedSide,
    baseline: ComparedSide,
    ceilings: Ceilings,
    labels: list[str],
) -> list[str]:
    """Add the roofline to a row, label what it shows, and return why the row must be rejected."""
    one = baseline.records[0]
    resident = any(RESIDENT in side.labels() for side in (xla, baseline))
    place, sweeps = place_of(one, resident), xla.sweeps | baseline.sweeps
    bandwidth = ceilings.bandwidth(place, sweeps)
    dtype = xla.dtype() or baseline.dtype()
    flop_rate = ceilings.flop_rate(place, sweeps, dtype, one.precision)
    least_s = roofline_s(row["least_bytes"], row["flops"], bandwidth, flop_rate)
    row |= {
        "ceiling_bandwidth": bandwidth,
        "ceiling_flop_rate": flop_rate,
        "roofline_s": least_s,
    }
    rejected = []
    for name, side in (("xla", xla), ("baseline", baseline)):
        reached = fraction(least_s, row[f"{name}_s"])
        row[f"{name}_fraction"] = reached
        if not resident and reached > FASTER_THAN_POSSIBLE:
            rejected.append(f"{side.backend}: faster than the roofline: {reached:.0%} of it")
    # Where the host is the limit, or a loop hides its work from the model, XLA is not to blame.
    excused = "host-bound" in xla.labels() or xla.fact("while_loops") > 0
    if row["xla_fraction"] < SUSPICIOUSLY_SLOW and not excused and not resident:
        labels.append("possible back-end regression")
    if math.isnan(bandwidth) and not resident:
        labels.append("no ceilings")
    return rejected


def _judge(
    row: dict[str, Any], xla: ComparedSide, baseline: ComparedSide, rejected: Sequence[str]
) -> None:
    """Add the ratio and the verdict to a row, or why there is none."""
    sides = (xla, baseline)
    obstacles = [f"{side.backend}: {text}" for side in sides for text in side.obstacles()]
    obstacles += rejected
    losses = [f"{side.backend}: {text}" for side in sides for text in side.losses()]
    ratio = Ratio(math.nan)
    if obstacles:
        row["verdict"] = "no ratio: " + "; ".join(obstacles)
    else:
        ratio = ratio_of(baseline.seconds("slope"), xla.seconds("slope"))
        row["verdict"] = "unsure"
        if ratio.low > 1:
            row["verdict"] = "XLA faster"
        elif ratio.high < 1:
            row["verdict"] = "baseline faster"
        elif math.isnan(ratio.low):
            losses.append("no interval: a side has fewer than 3 processes")
    row |= {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
    row["reasons"] = "; ".join([*obstacles, *losses])


def _labels(xla: ComparedSide, baseline: ComparedSide) -> list[str]:
    """Return the labels of both sides; one that only one side has names it."""
    left, right = xla.labels(), baseline.labels()
    return [
        *(label for label in left if label in right),
        *(f"{xla.backend}: {label}" for label in left if label not in right),
        *(f"{baseline.backend}: {label}" for label in right if label not in left),
    ]


def _counted(xla: ComparedSide, fact: str) -> float:
    """Return a fact of XLA's cost analysis, NaN for a loop, whose body it counts once."""
    return math.nan if xla.fact("while_loops") > 0 else xla.fact(fact)


def _least_bytes(side: ComparedSide) -> float | None:
    return side.comparison("least_bytes") or None


def _first(*values: float | None) -> float:
    return next((float(value) for value in values if value is not None), math.nan)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan
