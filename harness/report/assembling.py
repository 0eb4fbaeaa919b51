"""From the frame to the report: every section, and the answers at the top."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.frame.machines import shared_names
from harness.records.units import seconds_text
from harness.report.content import Part, Report
from harness.report.rows import newest, with_cases
from harness.report.sections import (
    against,
    cache,
    facts,
    history,
    limits,
    machines,
    scaling,
    stages,
    verdicts,
)
from harness.verdicts.error_rates import ErrorRates
from harness.verdicts.error_rates import newest as newest_rates

if TYPE_CHECKING:
    import pandas as pd


MOST_NAMES = 4
"""Machines that the title names."""


def assemble(
    frame: pd.DataFrame,
    comparisons: pd.DataFrame,
    rates: Sequence[ErrorRates] = (),
    links: Sequence[tuple[str, str]] = (),
) -> Report:
    """Return what the report says.

    Args:
        frame: of :func:`harness.load`.
        comparisons: of :func:`harness.against_baseline`.
        rates: of :func:`error_rates`.
        links: text and address of other pages.
    """
    cases = with_cases(frame)
    last = newest(cases)
    changed, compared = verdicts.latest(frame, cases, rates)
    problems = _problems(frame)
    doubts = (
        *_shared(frame),
        *limits.doubts(last, comparisons, rates),
        *([problems] if problems else []),
    )
    past = history.section(frame)
    side_by_side = machines.section(last)
    sections = (
        stages.section(last),
        verdicts.section(changed, compared),
        past,
        *([side_by_side] if side_by_side else []),
        scaling.section(last),
        cache.section(last),
        against.section(comparisons),
        facts.section(last),
        limits.environment(cases),
        limits.limits(frame, doubts, rates),
    )
    answers = (
        ("What was measured", _measured(last), "environment"),
        ("What takes longest", _longest(last), "stages"),
        ("What changed", _changed(changed, compared, past), "verdicts"),
        ("What cannot be trusted", doubts or ("Nothing stands out.",), "limits"),
    )
    names = list(dict.fromkeys(cases["machine"]))
    title = ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} machines"
    return Report(f"Benchmarks of {title or 'no machine'}", answers, sections, tuple(links))


def error_rates(results: Path, frame: pd.DataFrame) -> list[ErrorRates]:
    """Return the error rates of each machine at the effort that most of its rows have.

    Else its newest, as `harness compare` takes them; none is fine.
    """
    found = (
        newest_rates(results, str(name), str(part["effort"].mode().iat[0]))
        for name, part in frame.groupby("machine", sort=False)
    )
    return [rates for rates in found if rates is not None]


def _shared(frame: pd.DataFrame) -> list[str]:
    return [
        f"Unlike machines share the name {name} ({differs}): they are not compared, and what is "
        "shown of a case is of one of them."
        for name, differs in shared_names(frame).items()
    ]


def _problems(frame: pd.DataFrame) -> str:
    found: dict[str, Any] = frame.attrs.get("problems") or {}
    words = {
        "torn": "torn by a crash",
        "corrupt": "corrupt",
        "other_schema": "of another schema version",
        "unreadable": "in files that cannot be read",
    }
    parts = [f"{found[name]} {text}" for name, text in words.items() if found.get(name)]
    return f"Lines that could not be read: {', '.join(parts)}." if parts else ""


def _measured(last: pd.DataFrame) -> tuple[str, ...]:
    if last.empty:
        return ("Nothing but comparisons with baselines.",)
    days = last["started_at"].dropna().dt.strftime("%Y-%m-%d")
    span = " to ".join(dict.fromkeys([days.min(), days.max()])) if len(days) else "unknown days"
    on = ", ".join(dict.fromkeys(last["machine"]))
    targets = ", ".join(sorted(set(last["target"])))
    versions = ", ".join(sorted(set(last["jax"])))
    cases = last["case_number"].nunique()
    return (
        f"{cases} cases of {last['workload'].nunique()} workloads, for {targets}.",
        f"{span}, on {on}, with jax {versions}.",
        f"Up to {last['n_processes'].max()} processes per case.",
    )


def _longest(last: pd.DataFrame, most: int = 3) -> tuple[str, ...]:
    ok = last[(last["status"] == "ok") & ~last["stage"].isin(["first_call", "start"])]
    ok = ok[ok["scenario"] != stages.twice(ok)]
    rows = ok.nlargest(most, "value")
    return tuple(
        f"{seconds_text(value)}: {stage} of {f'{workload} {case}'.strip()}"
        for workload, case, stage, value in zip(
            rows["workload"], rows["case"], rows["stage"], rows["value"], strict=True
        )
    ) or ("Nothing was measured with success.",)


def _changed(changed: pd.DataFrame, compared: Sequence[str], past: Part) -> tuple[str, ...]:
    if changed.empty:
        return ("Nothing to compare with yet.",)
    worse = changed[changed["verdict"] == "slower"].head(2)
    lines = [
        f"{ratio:.2f} × the time: {stage} of {f'{workload} {case}'.strip()}"
        for workload, case, stage, ratio in zip(
            worse["workload"], worse["case"], worse["stage"], worse["ratio"], strict=True
        )
    ]
    points = {table.name: len(table.data) for table in past.tables}.get("changes", 0)
    steps = f"{points} change {'point' if points == 1 else 'points'} in the history."
    counts = f"{verdicts.counts_text(changed)}."
    return (*compared, counts, *lines, *([steps] if past.tables else []))
