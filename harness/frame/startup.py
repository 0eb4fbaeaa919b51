"""Where the time to the first result goes, and what of it the persistent cache saves."""

from __future__ import annotations

import pandas as pd

from harness.frame.cases import about, by_stage, case_columns, check, free_names, keys, measured
from harness.frame.choose import takes_frame
from harness.frame.frame import ORIGIN, axis_columns, ordinary
from harness.stages.registry import PROCESS_STAGES, STAGES, names, used
from harness.stages.scenarios.registry import SCENARIOS

ONCE = ("python", *(name for name in PROCESS_STAGES if name != "ready"))
"""Phases that a process pays once, whatever it runs."""

_FIRST = [name for name in ONCE if name.startswith("first_")]
"""Those that the first program pays: a first call contains them."""

STACKED = sorted(
    names(where=lambda stage: stage.stacked), key=lambda name: STAGES[name].step == "run"
)
"""Stages of a case that follow each other until its first result, running last."""

PHASES = (*ONCE, *STACKED)
"""All phases, in the order in which a fresh process goes through them."""

_LOADED = [name for name, scenario in SCENARIOS.items() if "build" not in scenario.steps]
"""Scenarios whose processes lower and compile nothing."""

_PROCESS = [*ORIGIN, "jax", "target", "scenario"]

_SECONDS = {
    ("cold", "compile"): "compile_s",
    ("warm", "load"): "load_s",
    ("cold", "first_call"): "first_call_cold_s",
    ("warm", "first_call"): "first_call_warm_s",
    ("cold", "start"): "start_cold_s",
    ("warm", "start"): "start_warm_s",
}

_COLUMNS = (*_SECONDS.values(), "entry_bytes", "saved_s", "relative_warm")


@takes_frame
def phases(frame: pd.DataFrame) -> pd.DataFrame:
    """Return where the time from starting a process to its first result goes, a row per case.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.

    Returns:
        :data:`harness.frame.cases.CASE`, a column per axis; then float64:

        - `python_s`, `import_s`, `backend_s`, `first_lower_s`, `first_compile_s`: seconds that a
          process of that origin, target and scenario pays once, equal in all its cases. `python` is
          the interpreter, the harness and the workload's module: `ready` less `import` and
          `backend`. `first_...` is a trivial program's, and stands for what the first program of
          any process pays besides; NaN where an executable is loaded.
        - `trace_s`, `lower_s`, then `compile_s`, or `load_s` of the cache or an executable.
        - `execute_s`: one call that ran before, so a first one may take longer; in the scenarios
          without it what `first_call` takes beyond the stages before it and what a process
          pays once for its first program, at least 0.
        - `total_s`: the sum of the phases, and `..._share`, each phase's part of it.

        Seconds are medians over processes, NaN where a phase was not measured or does not happen;
        `missing` names the phases that should be there, joined by `, `: `execute` of a target that
        is compiled for and not run. `total_s` is then the sum of the others.

    Raises:
        UsageError: this is no frame of results.
    """
    check(frame, "harness.phases")
    rows = measured(frame)
    case = case_columns(frame)
    key = keys(rows, case)
    stages = by_stage(rows, key)
    stages = stages.reindex(columns=[*STACKED, "first_call", used("first_call")]).dropna(how="all")
    rows = rows.assign(environment=rows.get("environment", ""))
    head = about(rows, [*case, "environment"], key, stages)

    once = _once(frame, head)
    built_elsewhere = head["scenario"].isin(_LOADED)
    once.loc[built_elsewhere, _FIRST] = float("nan")
    before = stages[STACKED[:-1]].sum(axis=1)
    # A process that was used already had paid for its first program.
    calls = stages["first_call"] - once[_FIRST].sum(axis=1), stages[used("first_call")]
    for call in calls:
        stages["execute"] = stages["execute"].fillna((call - before).clip(lower=0))
    wide = once.join(stages[STACKED]).astype(float)
    expected = [phase for phase in PHASES if phase not in ("compile", "load")]
    lacking = wide[expected].isna()
    lacking.loc[built_elsewhere, [*_FIRST, "trace", "lower"]] = False
    lacking["compile"] = wide["compile"].isna() & wide["load"].isna()
    names = pd.Series("", wide.index)
    for phase in PHASES:
        if phase in lacking:
            names = names.where(~lacking[phase], names + f", {phase}")
    total = wide.sum(axis=1)
    shares = wide.div(total.where(total > 0), axis=0)

    axes = axis_columns(frame)
    result = head[case]
    own = {f"{phase}_{what}" for phase in PHASES for what in ("s", "share")}
    result = result.rename(columns=free_names(axes, {*own, "total_s", "missing"}))
    result = result.join(wide.add_suffix("_s"))
    result["total_s"] = total
    result = result.join(shares.add_suffix("_share"))
    result["missing"] = names.str.removeprefix(", ")
    return result.astype({"missing": "str"}).reset_index(drop=True)


def _once(frame: pd.DataFrame, cases: pd.DataFrame) -> pd.DataFrame:
    """Return what the processes of each case pay once, in the order of `cases`.

    Taken from the processes with the very environment of the case, else from those of its target
    and scenario that are most.
    """
    rows = ordinary(frame)
    rows = rows[(rows["workload"] == "process") & (rows["status"] == "ok")].reset_index(drop=True)
    surroundings = rows.get("environment", pd.Series("", rows.index))
    order = rows["n_processes"] if "n_processes" in rows else pd.Series(0, rows.index)
    place = pd.Series(list(zip(*(rows[name] for name in _PROCESS), strict=True)), rows.index)
    exact: dict[object, dict[str, float]] = {}
    loose: dict[object, dict[str, float]] = {}
    for at in order.sort_values(kind="stable").index:
        for taken, one in ((exact, (place[at], surroundings[at])), (loose, place[at])):
            taken.setdefault(one, {})[rows["stage"][at]] = rows["value"][at]
    parts = []
    columns = (cases[name] for name in (*_PROCESS, "environment"))
    for *where, environment in zip(*columns, strict=True):
        there = loose.get(tuple(where), {})
        parts.append(exact.get((tuple(where), environment), there))
    table = pd.DataFrame(parts, index=cases.index).reindex(columns=PROCESS_STAGES).astype(float)
    table["python"] = (table["ready"] - table["import"] - table["backend"]).clip(lower=0)
    return table[list(ONCE)]


@takes_frame
def cache_effectiveness(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per case whose first call was measured both cold and warm.

    Args:
        frame: from :func:`harness.load` or :func:`harness.sweep`.

    Returns:
        :data:`harness.frame.cases.CASE` less `scenario`, a column per axis; then float64, NaN where
        not measured:
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
    head = about(rows, case, key, table)
    head = head.rename(columns=free_names(axis_columns(frame), _COLUMNS))
    return head.join(table.astype(float)).reset_index(drop=True)
