"""The columns of a frame of comparisons with baselines."""

import pandas as pd

from harness.frame.frame import ORIGIN

CASE = ("workload", "version", "target", "transform", "precision")
"""Columns that say which case it is, besides its axes."""

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


def axis_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns that hold axes."""
    return [name for name in frame.columns if name not in COLUMNS]
