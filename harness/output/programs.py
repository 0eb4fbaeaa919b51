"""Programs that changed, in words. Nothing prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from harness.frame.cases import case_texts, full_names
from harness.frame.frame import rows_of
from harness.output.verdicts import PROBLEMS, calls_text
from harness.records.units import counted
from harness.stages.registry import STAGES
from harness.verdicts import programs, verdict

MOST = 5
"""So many cases are named, unless all are wanted."""


def changed(frame: pd.DataFrame) -> list[str]:
    """Return `workload case: +47 HLO instructions, …` for each case with another program."""
    other = frame[frame["program"] != ""]
    names = full_names(other, _axes(other), scenario=True, machine="machine=")
    return [f"{name}: {program}" for name, program in zip(names, other["program"], strict=True)]


def changed_lines(frame: pd.DataFrame, every: bool = False) -> Iterator[str]:
    """Yield lines that name the changed programs, none where there are none."""
    lines = changed(frame)
    if lines:
        yield f"Another program in {len(lines)} of {counted(len(frame), 'case')}:"
        yield from (f"  {line}" for line in (lines if every else lines[:MOST]))
        if len(lines) > MOST and not every:
            yield f"  … and {len(lines) - MOST} more; `--all` lists all."


def _axes(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame.columns if name not in programs.COLUMNS]


def table(frame: pd.DataFrame, every: bool = False) -> pd.DataFrame:
    """Return the cases to list as text: what counts prove, and with `every` all others."""
    place = frame["verdict"].map({name: n for n, name in enumerate(programs.VERDICTS)})
    frame = frame.iloc[place.to_numpy().argsort(kind="stable")]
    quiet = frame["verdict"].isin([programs.NO_RISE, verdict.INCOMPARABLE])
    shown = frame if every else frame[~quiet]
    cases = case_texts(shown, _axes(shown), scenario=True, machine="machine=")
    shown = shown.assign(
        case=pd.Series(cases, shown.index, dtype="str"),
        reason=pd.Series([*map(_reason, rows_of(shown))], shown.index, dtype="str"),
    )
    return shown[["workload", "case", "verdict", "reason"]].reset_index(drop=True)


def _reason(row: Mapping[str, Any]) -> str:
    if row["problem"]:
        return PROBLEMS[row["problem"]](*row["detail"].split("; ", 1))
    stages = row["proven"].split(", ") if row["proven"] else []
    calls = {stage: [row[f"{STAGES[stage].counted}_{side}"] for side in "ab"] for stage in stages}
    return "; ".join(f"{one}: proven by counts: {calls_text(*own)}" for one, own in calls.items())


def summary_text(frame: pd.DataFrame) -> str:
    """Return in a line how many cases have which verdict, and how many another program."""
    numbers = frame["verdict"].value_counts()
    parts = [f"{numbers[verdict]} {verdict}" for verdict in programs.VERDICTS if verdict in numbers]
    other = int((frame["program"] != "").sum())
    parts += [f"another program in {other}"] if other else []
    verdicts, cases = ", ".join(parts) or "nothing to compare", counted(len(frame), "case")
    return f"By Python's calls in trace and lower, of {cases}: {verdicts}"


def left_out(frame: pd.DataFrame) -> Iterator[str]:
    """Yield why cases are not comparable by counts, a line for each kind of reason."""
    for _, own in frame[frame["verdict"] == verdict.INCOMPARABLE].groupby("problem", sort=False):
        reasons = Counter(map(_reason, rows_of(own))).most_common()
        others = f", and {len(reasons) - 1} reasons like it" * (len(reasons) > 1)
        yield f"Not compared by counts: {counted(len(own), 'case')}: {reasons[0][0]}{others}."
