"""What the persistent cache saves: cold beside warm, a row per case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.frame.cases import by_stage, case_columns, check, free_names, keys, measured
from harness.frame.frame import axis_columns

if TYPE_CHECKING:
    import pandas as pd

_SECONDS = {
    ("cold", "compile"): "compile_s",
    ("warm", "load"): "load_s",
    ("cold", "first_call"): "first_call_cold_s",
    ("warm", "first_call"): "first_call_warm_s",
    ("cold", "start"): "start_cold_s",
    ("warm", "start"): "start_warm_s",
}

_COLUMNS = (*_SECONDS.values(), "entry_bytes", "saved_s", "relative_warm")


def cache_effectiveness(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per case whose first call was measured both cold and warm.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.

    Returns:
        `machine`, `commit`, `dirty`, `env`, `effort`, `night`, `jax`, `workload`, `version`,
        `target`, `transform`, `precision`, a column per axis; then float64, NaN where not measured:
        `compile_s` (cold, the write included) and `load_s` (warm); `first_call_cold_s`,
        `first_call_warm_s`, `start_cold_s`, `start_warm_s`, medians over processes in seconds;
        `entry_bytes`; `saved_s`, compile_s - load_s; and `relative_warm`, the first call's time
        warm / cold (lower is better; 1 means that the cache saves nothing).

    Raises:
        UsageError: this is no frame of results.
    """
    check(frame, "harness.cache_effectiveness", ["entry_bytes"])
    rows = measured(frame)
    pairs = zip(rows["scenario"], rows["stage"], strict=True)
    rows = rows.assign(stage=[_SECONDS.get(pair, "") for pair in pairs])
    rows = rows[rows["stage"] != ""]
    case = [name for name in case_columns(frame) if name != "scenario"]
    # Scenarios set flags of their own, so that environments differ between cold and warm.
    key = keys(rows.drop(columns="environment", errors="ignore"), case)
    table = by_stage(rows, key).reindex(columns=list(_SECONDS.values()))
    table = table.dropna(subset=["first_call_cold_s", "first_call_warm_s"])
    table["entry_bytes"] = rows["entry_bytes"].groupby(key).max().reindex(table.index)
    table["saved_s"] = table["compile_s"] - table["load_s"]
    table["relative_warm"] = table["first_call_warm_s"] / table["first_call_cold_s"]
    about = rows[case].set_index(key)
    about = about[~about.index.duplicated()].reindex(table.index)
    about = about.rename(columns=free_names(axis_columns(frame), _COLUMNS))
    return about.join(table.astype(float)).reset_index(drop=True)
