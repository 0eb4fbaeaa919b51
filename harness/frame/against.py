"""Compare XLA with the baselines of workloads: a row per case, threads and baseline."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.frame.against_row import CASE, ORIGIN, row_of
from harness.frame.ceilings import Ceilings, is_ceiling
from harness.frame.compared_side import ComparedSide
from harness.frame.frame import INSTRUMENTS, axis_column, order_of
from harness.records.schema import Problems, Record, plain_axes, read_file
from harness.sides.registry import SIDES

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = (
    *("xla_s", "baseline_s", "ratio", "ratio_low", "ratio_high", "n_xla", "n_baseline"),
    *("xla_latency_s", "baseline_latency_s", "xla_dispatch_s", "baseline_dispatch_s"),
    *("xla_launches", "baseline_launches", "least_bytes", "xla_traffic", "baseline_traffic"),
    *("xla_bandwidth", "baseline_bandwidth", "flops", "ceiling_bandwidth", "ceiling_flop_rate"),
    *("roofline_s", "xla_fraction", "baseline_fraction", "xla_compile_cold_s"),
    *("xla_compile_warm_s", "baseline_compile_cold_s", "baseline_compile_warm_s"),
    *("break_even_cold", "break_even_warm", "xla_error", "baseline_error"),
)
"""Columns of float64."""

COLUMNS = (*ORIGIN, *CASE, "threads", "baseline", "verdict", *NUMBERS, "labels", "reasons")
"""Columns that every frame of comparisons has; one per axis stands behind `version`."""


def against_baseline(found: str | os.PathLike[str] | Iterable[Record] = "results") -> pd.DataFrame:
    """Return XLA beside each baseline, losses as plainly as wins.

    Args:
        found: a results tree, one machine's folder in it or one file of records; or records.

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
          once.
        - `ceiling_bandwidth`, `ceiling_flop_rate`: bytes/s and flop/s that the same sweep reached;
          `roofline_s` and `..._fraction`: :mod:`harness.frame.roofline`.
        - `..._compile_cold_s`, `..._compile_warm_s`: what is paid once
          (:meth:`harness.frame.compared_side.ComparedSide.compile_s`); `break_even_cold`,
          `break_even_warm`: after how many calls XLA has cost no more, infinite for never.
        - `xla_error`, `baseline_error`: relative L2 distance to the float64 reference.

        `labels` and `reasons` are text, parts joined by `; `.

    Raises:
        UsageError: there is no such path.
    """
    import pandas as pd

    records = _records(found) if isinstance(found, str | os.PathLike) else list(found)
    compared = [r for r in records if r.comparison and r.workload not in INSTRUMENTS]
    ceilings = Ceilings(compared)
    rows: list[dict[str, Any]] = []
    axes: dict[str, None] = {}
    for sides in _cases(record for record in compared if not is_ceiling(record)):
        xla = sides.pop("xla", ComparedSide("xla", []))
        for baseline in sides.values():
            row = row_of(xla, baseline, ceilings)
            first = baseline.records[0]
            own = {axis_column(name, COLUMNS): v for name, v in plain_axes(first.axes).items()}
            axes.update(dict.fromkeys(own))
            rows.append(row | own)
    head, tail = COLUMNS[: COLUMNS.index("target")], COLUMNS[COLUMNS.index("target") :]
    # Whole numbers on an axis stay whole where another workload lacks the axis.
    frame = pd.DataFrame(rows, columns=[*head, *axes, *tail], dtype=object)
    return frame.astype({name: float if name in NUMBERS else "str" for name in COLUMNS})


def _records(found: str | os.PathLike[str]) -> list[Record]:
    from harness.frame.load import ADVICE, record_files_of, warn_of

    path = Path(found)
    if not path.exists():
        raise UsageError(f"There are no results at {path}: it does not exist. {ADVICE}")
    problems = Problems()
    latest: dict[tuple[str, str], Record] = {}
    for file in record_files_of(path):
        for record in read_file(file, problems):
            if record.comparison is not None:
                latest[record.key, record.replicate] = record
    warn_of(path, problems)
    return list(latest.values())


def _cases(records: Iterable[Record]) -> Iterator[dict[str, ComparedSide]]:
    """Yield the sides of each case and number of threads, in the order of tables."""
    found: dict[tuple[Any, ...], dict[str, list[Record]]] = {}
    for record in records:
        side = record.comparison
        if side is None:
            continue
        case = (*(getattr(record, name) for name in (*ORIGIN, *CASE)), side.threads)
        sides = found.setdefault((*case, repr(sorted(record.axes.items()))), {})
        sides.setdefault(side.backend, []).append(record)
    known = list(SIDES)

    def place(sides: dict[str, list[Record]]) -> tuple[Any, ...]:
        one = next(iter(sides.values()))[0]
        names = ("commit", "dirty", "effort", "env", "workload", "version", "target", "precision")
        threads = one.comparison.threads if one.comparison else ""
        axes = tuple(map(order_of, plain_axes(one.axes).values()))
        texts = (getattr(one, name) for name in names)
        return (one.machine, one.commit_date_ms or 0, *texts, threads != "one", axes)

    for sides in sorted(found.values(), key=place):
        order = sorted(sides, key=lambda name: (known.index(name) if name in known else 99, name))
        yield {backend: ComparedSide(backend, sides[backend]) for backend in order}
