"""What the persistent cache saves: cold beside warm, a row per case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.analysis.choose import ORIGIN, ordinary
from harness.analysis.frame import axis_columns

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = {
    ("cold", "compile"): "compile_s",
    ("warm", "load"): "load_s",
    ("cold", "first_call"): "first_call_cold_s",
    ("warm", "first_call"): "first_call_warm_s",
    ("cold", "start"): "start_cold_s",
    ("warm", "start"): "start_warm_s",
}


def cache_effectiveness(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per case that was measured both cold and warm.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.

    Returns:
        What tells cases apart, then seconds: `compile_s` (cold, the write included) and `load_s`
        (warm); `first_call_cold_s`, `first_call_warm_s`, `start_cold_s`, `start_warm_s`; then
        `entry_bytes`; `saved_s`, compile_s - load_s; and `relative_warm`, the first call's time
        warm / cold (lower is better; 1 means that the cache saves nothing).
    """
    frame = ordinary(frame)
    axes = axis_columns(frame)
    case = [*ORIGIN, "workload", "version", "target", "transform", "precision", *axes]
    pairs = zip(frame["scenario"], frame["stage"], strict=True)
    named = frame.assign(column=[_COLUMNS.get(pair, "") for pair in pairs])
    named = named[(named["status"] == "ok") & (named["column"] != "")]
    # A case is told by text, because an axis may hold values of several types, and NaN.
    rows = named[case].itertuples(index=False)
    named = named.assign(case=["\0".join(map(str, row)) for row in rows])
    table = named.pivot_table(index="case", columns="column", values="value", sort=False)
    table = table.reindex(columns=list(_COLUMNS.values())).dropna(
        subset=["first_call_cold_s", "first_call_warm_s"]
    )
    first = named.drop_duplicates("case").set_index("case")[case]
    sizes = named.groupby("case")["entry_bytes"].max()
    found = first.join(table, how="inner").join(sizes)
    found["saved_s"] = found["compile_s"] - found["load_s"]
    found["relative_warm"] = found["first_call_warm_s"] / found["first_call_cold_s"]
    return found.reset_index(drop=True).dropna(axis="columns", how="all")
