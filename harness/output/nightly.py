"""What a night prints, and its summary in Markdown: for the results tree, a job, and an issue."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import ExitCode
from harness.records.nights import MeasuredEnvironment, NightSummary
from harness.records.printable import escaped, table_lines

ENDS = {
    ExitCode.FINE: "Nothing is slower than on the last good night.",
    ExitCode.WORSE: "Something is slower than on the last good night.",
    ExitCode.BROKEN: "Something fails that worked on the last good night.",
    ExitCode.SOME_FAILED: "Some cases failed, or are missing.",
    ExitCode.UNUSABLE: "Nothing was measured in an environment.",
    ExitCode.INCOMPLETE: "Measured, but the report failed.",
}

FIRST = "Nothing to compare with: no earlier night measured the same."
NO_FIGURES = "the extra `figures` is not installed"
REPORT_ENDED = "`harness report` ended with {code}, see report.log"
MEASURING = "night {night}: measuring in {environment}; log: {log}"
REPORTING = "night {night}: writing the report"


def render(summary: NightSummary, compared: Sequence[str], answers: Sequence[str]) -> str:
    """Return the summary of a night.

    `compared` is the Markdown of each comparison, "" for none, and `answers` their sentences.
    """
    code = ExitCode(summary.exit_code)
    alone = code is ExitCode.FINE and not any(one.against for one in summary.measured)
    parts = [
        f"# Night {summary.night} on {escaped(summary.machine)}",
        *(f"**{escaped(one)}.**" for one in dict.fromkeys(answers)),
        f"**{FIRST if alone else ENDS[code]}** Commit `{summary.commit[:8]}`, effort "
        f"{escaped(summary.effort)}, exit code {summary.exit_code}.",
        _environments(summary.measured),
    ]
    for one, text in zip(summary.measured, compared, strict=True):
        parts += _compared(one, text) if text else []
    failures = [
        f"- {one.environment}, {escaped(failure.workload)} {failure.stage}: {failure.status}, "
        f"{escaped(failure.reason[:300])}"
        for one in summary.measured
        for failure in one.failures
    ]
    parts += ["## Failed or missing", "\n".join(failures)] if failures else []
    parts += [f"No report: {summary.report}."] if summary.report else []
    return "\n\n".join(parts) + "\n"


def issue(summary: NightSummary, compared: Sequence[str]) -> str:
    """Return what an issue about a night says: what is slower or fails now; "" without."""
    parts = [f"# Night {summary.night} on {escaped(summary.machine)}"]
    for one, text in zip(summary.measured, compared, strict=True):
        if text and one.verdict in (ExitCode.WORSE, ExitCode.BROKEN):
            parts += _compared(one, text)
    return "\n\n".join(parts) + "\n" if len(parts) > 1 else ""


def _compared(one: MeasuredEnvironment, text: str) -> list[str]:
    return [f"## {one.environment} against the night {one.against}", text]


def _environments(measured: Sequence[MeasuredEnvironment]) -> str:
    statuses = ("ok", "failed", "refused", "skipped")
    rows = [
        [one.environment, *(one.rows.get(status, 0) for status in statuses), one.against]
        for one in measured
    ]
    return "\n".join(table_lines(["environment", *statuses, "compared with"], rows))
