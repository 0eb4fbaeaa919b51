"""The summary of a night in Markdown: for the results tree, a job's page, and an issue."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import ExitCode
from harness.frame.tables import case_text
from harness.nightly.state import ENDS, Night, Nights, Verdicts
from harness.nightly.verdicts import read_rows
from harness.records.files import OWN
from harness.records.printable import escaped, table_lines
from harness.records.units import counted, seconds_text
from harness.verdicts.history.change_points import COLUMNS as CHANGE_COLUMNS
from harness.verdicts.history.steps import NEW
from harness.verdicts.judge import COLUMNS as VERDICT_COLUMNS
from harness.verdicts.rules import BROKEN, FASTER, SLOWER

MOST = 50
"""So many rows of a table are shown; all of them are in the files beside the summary."""

TOLD = (BROKEN, SLOWER, FASTER)
"""Verdicts whose rows are told, in this order."""


def render(night: Night, nights: Nights) -> str:
    """Return the summary of a night."""
    own = nights.own(night.night)
    number = sum(len(one.programs) for one in night.verdicts if one.kind == "night")
    other = f", another program in {counted(number, 'case')}" if number else ""
    parts = [
        f"# Night {night.night} on {escaped(night.machine)}",
        f"**{ENDS[ExitCode(night.exit_code or 0)]}{other}** (exit code "
        f"{night.exit_code}) · commit `{night.commit[:8]}` · effort {escaped(night.effort)} "
        f"· harness {night.harness}",
    ]
    if night.noisy:
        parts.append(
            "**Noisy**: identical arms were called different too often tonight, so that no verdict "
            f"below counts. {escaped(night.steps['probe'].note)}"
        )
    parts += ["## Environments", _environments(night)]
    for verdicts in night.verdicts:
        parts += [_heading(verdicts), *_judged(verdicts, own)]
    parts += _changes(night, own)
    parts += _failures(night, nights)
    if night.steps.get("probe") and not night.noisy:
        parts.append(f"A/A probe: {escaped(night.steps['probe'].note)}")
    return "\n\n".join(parts) + "\n"


def issue(night: Night, nights: Nights) -> str:
    """Return what an issue about a bad night says: what is slower or broken; "" without."""
    if not night.slower() and not night.broken():
        return ""
    own = nights.own(night.night)
    parts = [f"## Night {night.night} on {escaped(night.machine)}", _environments(night)]
    for verdicts in night.verdicts:
        if verdicts.kind == "night" and (verdicts.slower or verdicts.counts.get("broken")):
            parts += [_heading(verdicts), *_judged(verdicts, own)]
    return "\n\n".join(parts) + "\n"


def _environments(night: Night) -> str:
    head = ("environment", "versions", "name", "ok rows", "failed", "skipped", "cases")
    lines = []
    for found in night.environments:
        versions = ", ".join(f"{k} {v}" for k, v in found.versions.items()) or "not made"
        numbers: list[object] = [""] * 4
        if rows := found.rows:
            cases = f"{rows.declared_cases - len(rows.missing)} of {rows.declared_cases}"
            numbers = [rows.ok, rows.failed + rows.refused, rows.skipped, cases]
        lines.append([found.name, versions, found.env, *map(str, numbers)])
    return _table(head, lines)


def _heading(verdicts: Verdicts) -> str:
    what = "night" if verdicts.kind == "night" else "release in"
    return f"## {escaped(verdicts.environment)} against the {what} {escaped(verdicts.against)}"


def _judged(verdicts: Verdicts, own: Path) -> Iterator[str]:
    before, after = (commit[:8] for commit in verdicts.commits)
    counts = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.counts.items())
    commits = f"commit `{before}`" if before == after else f"commits `{before}` → `{after}`"
    noisy = " The earlier night was noisy." if verdicts.noisy else ""
    yield (
        f"{counts or 'nothing comparable'} · {commits} · environment: "
        f"{escaped(verdicts.difference) or 'equal'}.{noisy}"
    )
    if verdicts.stages:
        yield "\n".join(f"- **{escaped(line)}**" for line in verdicts.stages)
    if verdicts.inside:
        yield "Inside of compiles that changed, in seconds of all threads:"
        yield "\n".join(f"- {escaped(line)}" for line in verdicts.inside[:MOST])
    if verdicts.programs:
        yield f"Another program in {counted(len(verdicts.programs), 'case')}:"
        yield "\n".join(f"- {escaped(line)}" for line in verdicts.programs[:MOST])
    if len(verdicts.programs) > MOST:
        yield f"{len(verdicts.programs) - MOST} more are in `{verdicts.file}`."
    rows = [row for row in read_rows(own / Path(verdicts.file).name) if row.get("verdict") in TOLD]
    if not rows:
        return
    rows.sort(key=lambda row: (TOLD.index(row["verdict"]), -abs((row.get("ratio") or 1) - 1)))
    head = ("case", "stage", "before", "now", "ratio", "interval", "verdict", "why")
    yield _table(head, map(_verdict_line, rows[:MOST]))
    if len(rows) > MOST:
        yield f"{len(rows) - MOST} more rows are in `{verdicts.file}`."


def _verdict_line(row: Mapping[str, Any]) -> Sequence[str]:
    cause = f"{row['cause']}: " if row.get("cause") else ""
    return (
        *(_case(row, VERDICT_COLUMNS), str(row["stage"])),
        *(_seconds(row.get("a_s")), _seconds(row.get("b_s"))),
        *(_number(row.get("ratio")), f"{_number(row.get('low'))} to {_number(row.get('high'))}"),
        *(str(row["verdict"]), f"{cause}{row.get('reason') or ''}"),
    )


def _changes(night: Night, own: Path) -> Iterator[str]:
    rows = [row for row in read_rows(own / f"history{OWN}") if row.get("machine") == night.machine]
    if not rows:
        return
    rows.sort(key=lambda row: str(row.get("started_at") or ""), reverse=True)
    yield "## Change points, the newest first"
    head = ["since", "change", "case", "stage", "before", "after", "ratio", "commits"]
    head += ["environment", "program"]
    yield _table(head, map(_change_line, rows[:MOST]))
    if len(rows) > MOST:
        yield f"{len(rows) - MOST} earlier ones are in `history{OWN}`."


def _change_line(row: Mapping[str, Any]) -> Sequence[str]:
    before, after = (str(row.get(f"commit_{side}") or "")[:8] for side in ("before", "after"))
    new = ", new" if row.get("state") == NEW else ""
    same = row.get("same_program")
    program = "" if same is None else "equal" if same else row.get("facts") or "changed"
    return (
        *(str(row.get("night_after") or after), f"{row.get('change')}{new}"),
        *(_case(row, CHANGE_COLUMNS), str(row["stage"]), _seconds(row.get("before_s"))),
        *(_seconds(row.get("after_s")), _number(row.get("ratio"))),
        after if before == after else f"{before}..{after}",
        str(row.get("environment") or ""),
        "; ".join(filter(None, (str(program), row.get("inside")))),
    )


def _failures(night: Night, nights: Nights) -> Iterator[str]:
    found = [
        f"- {escaped(step)}: {escaped(outcome.note)}"
        for step, outcome in night.steps.items()
        if outcome.status == "failed"
    ]
    for one in night.environments:
        if one.rows is None:
            continue
        name = escaped(one.name)
        found += [
            f"- {name}, {escaped(case)}: {escaped(why)}" for case, why in one.rows.reasons.items()
        ]
        found += [f"- {name}, not measured: {escaped(case)}" for case in one.rows.missing[:MOST]]
        before, less = nights.shortfall(night, one)
        found += [f"- {name}, fewer than in the night {before}: {escaped(text)}" for text in less]
    if found:
        yield "## Failures"
        yield "\n".join(found)


def _case(row: Mapping[str, Any], columns: Collection[str]) -> str:
    """Return the case of a row; what is none of the `columns` of its table is an axis."""
    axes = {k: v for k, v in row.items() if k not in columns and v is not None}
    told = (str(row.get(k) or "") for k in ("transform", "target", "precision", "scenario"))
    return f"{row['workload']} {case_text(axes, *told)}".rstrip()


def _seconds(value: Any) -> str:
    return "" if value is None else seconds_text(float(value))


def _number(value: Any) -> str:
    return "" if value is None else f"{float(value):.3f}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(table_lines(head, lines))
