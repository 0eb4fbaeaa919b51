"""The probe's findings as text: for a terminal, and as a page for the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from harness.cache.probe.findings import Finding, Report, Run
from harness.cache.probe.rows import ROWS

HEADINGS = ("row", "expectation", "result", "what happened", "evidence")

WARNING_LENGTH = 150
"""Longer warnings are cut in a table; the JSON file has them whole."""


def evidence(finding: Finding) -> str:
    """What each process of a row did, then what they warned of."""
    parts = [_run(run) for run in finding.runs]
    texts = dict.fromkeys(_shortened(text) for run in finding.runs for text in run.warnings)
    return "; ".join(parts + [f"“{text}”" for text in texts])


def _run(run: Run) -> str:
    files = f"{run.files_before}→{run.files_after} files"
    if run.killed:
        return f"{run.label}: killed, {files}"
    return f"{run.label}: {run.hits}/{run.requests} hits, {files}, {run.call_s:.2f} s"


def _shortened(text: str) -> str:
    text = re.sub(r"[0-9a-f]{64}", "KEY", text)
    return text if len(text) <= WARNING_LENGTH else text[: WARNING_LENGTH - 1] + "…"


def cells(report: Report) -> list[tuple[str, ...]]:
    """One line of cells per row, under `HEADINGS`."""
    return [
        (one.row, one.expectation, one.verdict, one.happened, evidence(one))
        for one in report.findings
    ]


def summary(report: Report) -> str:
    """How many rows went how, and on what."""
    verdicts = [finding.verdict for finding in report.findings]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("pass", "fail"))
    return f"{_name(report)}: {counts}, {verdicts.count('n/a')} n/a."


def _name(report: Report) -> str:
    one = report.installation
    return f"jax {one.jax}, jaxlib {one.jaxlib}, Python {one.python}, {one.system}"


def markdown(reports: Sequence[Report]) -> str:
    """A page with the installations side by side and an explanation of every row."""
    names = [row.name for row in ROWS]
    by_row = {
        name: [_find(report, name) for report in reports]
        for name in names
        if any(_find(report, name) for report in reports)
    }
    verdicts = {
        name: {found.verdict if found else "not run" for found in by_row[name]} for name in by_row
    }
    differing = [name for name in by_row if len(verdicts[name]) > 1]
    failing = [name for name in by_row if verdicts[name] == {"fail"}]
    others = [name for name in by_row if name not in differing and name not in failing]
    lines = [
        "# What the persistent compilation cache does",
        "",
        "Each row is an experiment: real processes, a real cache directory, on the CPU, with the "
        "threshold at 0 s unless the row says otherwise. “Pass” means that what a user would "
        "expect came true. This page is written by",
        "",
        "    harness cache probe --python EXE --json docs/cache/probe-results/VERSION.json",
        "    harness cache probe --read docs/cache/probe-results/VERSION.json ... --markdown",
        "",
        "the first line once per installation, with the interpreter of an environment that has "
        "that JAX; it exits with 5 where a row fails. The JSON files hold the evidence: requests, "
        "hits, writes, files before and after, warnings and seconds of every process.",
        "",
        *_lines("installation", "probed on", "pass", "fail", "n/a"),
    ]
    for report in reports:
        found: list[str] = [finding.verdict for finding in report.findings]
        lines += [_line(_name(report), report.date, *map(found.count, ("pass", "fail", "n/a")))]
    lines += [
        "",
        "## Side by side",
        "",
        *_lines("row", "expected", *(f"jax {report.installation.jax}" for report in reports)),
    ]
    titles = {row.name: row for row in ROWS}
    for name, findings in by_row.items():
        row = titles[name]
        lines += [_line(f"{row.title} (`{name}`)", row.expectation, *map(_cell, findings))]
    for heading, group in (
        ("Rows that differ", differing),
        ("Rows that fail everywhere", failing),
        ("The other rows", others),
    ):
        if group:
            lines += ["", f"## {heading}"]
        for name in group:
            lines += ["", f"### {titles[name].title}", "", titles[name].explanation, ""]
            for report, one in zip(reports, by_row[name], strict=True):
                shown = _escaped(f"{one.verdict}. {evidence(one)}" if one else "not run")
                lines += [f"- jax {report.installation.jax}: {shown}"]
    return "\n".join(lines) + "\n"


def _find(report: Report, name: str) -> Finding | None:
    return next((finding for finding in report.findings if finding.row == name), None)


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return "not run"
    verdict = "**fail**" if finding.verdict == "fail" else finding.verdict
    return f"{verdict}: {finding.happened}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _line(*texts: object) -> str:
    return "| " + " | ".join(_escaped(str(text)) for text in texts) + " |"


def _lines(*headings: str) -> Iterable[str]:
    return _line(*headings), _line(*("---" for _ in headings))
