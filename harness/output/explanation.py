"""What a verdict rests on: samples, processes, hosts, programs, and the rule that decided."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness.frame.arms import records_behind
from harness.frame.differences import environment_difference, facts_difference
from harness.frame.frame import rows_of
from harness.frame.pairs import Pair, Row
from harness.output.comparison import ratio_text
from harness.output.verdicts import CLOCKS, percent, reasons_of
from harness.records.schema import Record
from harness.records.units import seconds_text
from harness.stages import registry
from harness.stages.stage import LOOP
from harness.verdicts import rules, verdict
from harness.verdicts.table import cases, ordered

if TYPE_CHECKING:
    from harness.verdicts.compare import Comparison

MOST = 20
"""Rows that are explained at the most."""


def explained(
    comparison: Comparison, records: Sequence[Iterable[Record]], narrowed: bool
) -> Iterator[str]:
    """Yield a text of several lines for each row: the worst 20, without `same` unless `narrowed`.

    `records` are those of each arm, such as :class:`harness.frame.arms.StoredRecords`;
    others among them do no harm.
    """
    frame = ordered(reasons_of(comparison))
    if not narrowed:
        frame = frame[frame["verdict"] != verdict.SAME]
    chosen = frame.iloc[:MOST]
    pairs = [comparison.pairs.pairs[number] for number in chosen.index]
    rows_shown = [
        records_behind([pair[side] for pair in pairs], of_arm, comparison.pairs.axes)
        for side, of_arm in enumerate(records)
    ]
    for row, case, pair, *both in zip(
        rows_of(chosen), cases(chosen), pairs, *rows_shown, strict=True
    ):
        title = " · ".join(filter(None, (row["workload"], case, row["stage"])))
        lines = [f"{title}: {row['verdict']}", *_rule(row, pair)]
        for name, one, of_row in zip("AB", pair, both, strict=True):
            lines += _side(name, one, of_row)
        yield "\n".join(lines)
    if len(frame) > MOST:
        yield f"{len(frame) - MOST} more rows are not explained: narrow with -s, --stage or --case."


def _rule(row: dict[str, Any], pair: Pair) -> list[str]:
    lines = [f"  rule: {row['reason']}"]
    a, b = pair
    if row["clock"]:
        p, corrected = _number(row["p"]), _number(row["p_adjusted"])
        usual = row["effect"] <= registry.effect(row["stage"])
        raised = "" if usual else " (raised: what this machine does by itself)"
        lines.append(
            f"  B / A {ratio_text(row)}; p {p}, corrected {corrected} (alpha {rules.ALPHA:g}); "
            f"threshold {percent(row['effect'])}{raised}; {CLOCKS[row['clock']]}"
        )
        if row["stage_reason"]:
            lines.append(f"  the stage: {row['stage_verdict']}: {row['stage_reason']}")
    if a is not None and b is not None:
        environment = environment_difference(a["environment"], b["environment"])
        lines.append(f"  environment: {environment or 'nothing recorded differs'}")
        facts = facts_difference(a, b)
        program = rules.program_of(a, b) or "not known"
        lines.append(f"  program: {program}" + (f"; {facts}" if facts else ""))
    return lines


def _number(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.2g}"


def _side(name: str, row: Row | None, records: Sequence[Record]) -> list[str]:
    if row is None:
        return [f"  {name}: no row"]
    began = row["started_at"]
    about = [
        row["machine"],
        f"commit {row['commit'][:8] or 'none'}" + (" changed" if row["dirty"] else ""),
        f"night {row['night']}" if row["night"] else "",
        row["env"],
        f"effort {row['effort']}",
        "" if began != began else f"last process {began:%Y-%m-%d %H:%M:%S} UTC",
        f"program {row['fingerprint'][:12] or 'not known'}",
        row["status"] + (f": {row['reason']}" if row["reason"] else ""),
    ]
    lines = [f"  {name}: " + " · ".join(filter(None, about))]
    if records:
        return lines + [f"    {_process(record, row['stage'])}" for record in records]
    values = ", ".join(f"{value:.4g}" for value in row["samples"])
    return [*lines, f"    no records at hand; seconds per process: {values or 'none'}"]


def _process(record: Record, stage: str) -> str:
    """Return a process in a line: its value, CPU time, loop, samples, host and program."""
    taken = record.stages.get(stage)
    if taken is None or not taken.samples_ns:
        why = taken.reason if taken is not None else record.reason
        return f"{record.replicate}: {record.status}: {why or 'no samples of this stage'}"
    value = registry.stage_of(stage).statistic(taken.samples_ns)
    loop = record.reference_ns.get(LOOP)
    host = json.loads(bytes(record.environment) or b"{}").get("host", {})
    parts = [
        f"{record.replicate}: {seconds_text(value / 1e9)}",
        f"CPU {seconds_text(min(taken.cpu_ns) / 1e9)}" if taken.cpu_ns else "",
        f"loop {seconds_text(loop / 1e9)}" if loop else "",
        f"load {record.load_average[0]:.2f}" if record.load_average else "",
        "" if record.others_cores is None else f"others {record.others_cores:.1f} cores",
        f"{host.get('affinity', '?')} cores of {host['cpu']}" if host.get("cpu") else "",
        f"program {record.fingerprint[:8]}" if record.fingerprint else "",
        ("least of " if stage in registry.OF_CALLS else "median of ")
        + " ".join(f"{sample / 1e9:.4g}" for sample in taken.samples_ns)
        + " s",
        f"{sum(taken.refused.values())} refused" if taken.refused else "",
    ]
    return " · ".join(filter(None, parts))
