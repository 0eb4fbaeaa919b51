"""What the probe found: the evidence in JSON, one file per installation, and the page of them."""

import re
from pathlib import Path
from typing import Literal

import msgspec

from tools.probe.bench import Run
from tools.probe.rows import ROWS

DOCS = Path(__file__).parents[2] / "docs" / "cache"
WARNING_LENGTH = 150
"""Longer warnings are cut on the page; the JSON file has them whole."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One row: what was expected, what happened, and the processes that show it."""

    row: str
    title: str
    expectation: str
    verdict: Literal["pass", "fail", "n/a"]
    happened: str
    runs: tuple[Run, ...] = ()
    seconds_s: float = 0.0


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """What was probed; no path of the machine is kept."""

    jax: str
    jaxlib: str
    python: str
    system: str
    modules: tuple[str, ...] = ()

    def __str__(self):
        return f"jax {self.jax}, jaxlib {self.jaxlib}, Python {self.python}, {self.system}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of one installation."""

    installation: Installation
    date: str
    findings: tuple[Finding, ...]
    harness: str = ""
    schema: int = 1


def save(path, report):
    """Write the evidence of one installation."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode([report]), indent=1) + b"\n")


def load(folder):
    """Read the evidence of all installations, in the order of their releases."""
    reports = [
        report
        for path in folder.glob("*.json")
        for report in msgspec.json.decode(path.read_bytes(), type=list[Report])
    ]
    return sorted(reports, key=lambda one: [int(n) for n in one.installation.jax.split(".")])


def committed():
    """Return by release the verdict on each row that the page shows."""
    return {
        report.installation.jax: {finding.row: finding.verdict for finding in report.findings}
        for report in load(DOCS / "probe-results")
    }


def evidence(finding):
    """What each process of a row did, then what they warned of."""
    parts = []
    for run in finding.runs:
        files = f"{run.files_before}→{run.files_after} files"
        how = f"{run.hits}/{run.requests} hits, {files}"
        parts.append(f"{run.label}: {f'killed, {files}' if run.killed else how}")
    warned = (re.sub(r"[0-9a-f]{64}", "KEY", text) for run in finding.runs for text in run.warnings)
    cut = (
        text if len(text) <= WARNING_LENGTH else text[: WARNING_LENGTH - 1] + "…" for text in warned
    )
    return "; ".join(parts + [f"“{text}”" for text in dict.fromkeys(cut)])


HEAD = """\
# What the persistent compilation cache does

Each row is an experiment: real processes, a real cache directory, on the CPU, with the threshold \
at 0 s unless the row says otherwise. “Pass” means that what a user would expect came true; a cell \
without words is like the one before it. This page is written, in a checkout, by

    python -m tools.probe --python EXE --write docs/cache/probe.md

with the interpreter of an environment that has the JAX to be probed (about a minute). The files \
in probe-results/ hold the evidence: requests, hits, writes, files before and after, warnings and \
seconds of every process.
"""


def page(reports):
    """The page: the installations side by side, and an explanation of every row."""
    found = {
        name: [next((f for f in one.findings if f.row == name), None) for one in reports]
        for name in ROWS
    }
    lines = [HEAD, *_lines("installation", "probed on", "pass", "fail", "n/a")]
    for report in reports:
        verdicts = [finding.verdict for finding in report.findings]
        counts = map(verdicts.count, ("pass", "fail", "n/a"))
        lines.append(_line(report.installation, report.date, *counts))
    names = [f"jax {report.installation.jax}" for report in reports]
    lines += ["", "## Side by side", "", *_lines("row", "expected", *names)]
    for name, findings in found.items():
        row = ROWS[name]
        cells = map(_cell, findings, [None, *findings])
        lines.append(_line(f"{row.title} (`{name}`)", row.expectation, *cells))
    for heading, group in _groups(found).items():
        lines += ["", f"## {heading}"]
        for name in group:
            lines += ["", f"### {ROWS[name].title}", "", ROWS[name].explanation, ""]
            alike = {}
            for report, one in zip(reports, found[name], strict=True):
                shown = _escaped(f"{one.verdict}. {evidence(one)}" if one else "not run")
                alike.setdefault(shown, []).append(report.installation.jax)
            lines += [f"- jax {', '.join(releases)}: {shown}" for shown, releases in alike.items()]
    return "\n".join(lines) + "\n"


def _groups(found):
    groups = {"Rows that differ": [], "Rows that fail everywhere": [], "The other rows": []}
    for name, findings in found.items():
        verdicts = {one.verdict if one else "not run" for one in findings}
        position = 0 if len(verdicts) > 1 else 1 if verdicts == {"fail"} else 2
        list(groups.values())[position].append(name)
    return {heading: group for heading, group in groups.items() if group}


def _cell(finding, before):
    """What happened is said once of releases that follow each other and are alike."""
    if finding is None:
        return "not run"
    verdict = "**fail**" if finding.verdict == "fail" else finding.verdict
    same = before is not None and before.happened == finding.happened
    return verdict if same else f"{verdict}: {finding.happened}"


def _escaped(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def _line(*texts):
    return "| " + " | ".join(_escaped(str(text)) for text in texts) + " |"


def _lines(*headings):
    return _line(*headings), _line(*("---" for _ in headings))
