"""A comparison as Markdown for a pull request: what changed on top, the rest folded."""

from __future__ import annotations

import html
import re

import pandas as pd

from harness.analysis.verdicts import by_stage, rules
from harness.analysis.verdicts.compare import Comparison
from harness.analysis.verdicts.environments import environment_lines
from harness.analysis.verdicts.listing import (
    across_lines,
    footer,
    heading,
    legend,
    ordered,
    summary_text,
    table,
)

MOST = 200
"""Rows of a table; GitHub cuts comments at 65,536 characters."""


def to_markdown(comparison: Comparison, every: bool = False) -> str:
    """Return a comparison as Markdown; rows that are `same` are only counted unless `every`."""
    frame = ordered(comparison.frame)
    blocks = [f"**{escaped(summary_text(frame))}**", escaped(heading(comparison))]
    blocks += [f"**{escaped(line)}**" for line in across_lines(comparison)]
    blocks += [escaped(line) for line in environment_lines(comparison)]
    overview = by_stage.table(frame)
    if len(overview):
        blocks.append(_table(overview))
    for verdict in (rules.SLOWER, rules.FASTER):
        rows = frame[frame["verdict"] == verdict]
        if len(rows):
            blocks += [f"### {verdict.capitalize()}", _rows(rows, every)]
    rest = [rules.UNSURE, rules.INCOMPARABLE, *([rules.SAME] if every else [])]
    for verdict in rest:
        rows = frame[frame["verdict"] == verdict]
        if len(rows):
            summary = f"<summary>{len(rows)} {verdict}</summary>"
            blocks.append(f"<details>{summary}\n\n{_rows(rows, every)}\n\n</details>")
    blocks += [f"<sub>{escaped(line)}</sub>" for line in (*legend(comparison), *footer(comparison))]
    return "\n\n".join(blocks)


def _rows(frame: pd.DataFrame, every: bool) -> str:
    shown = frame if every else frame.iloc[:MOST]
    left = f"\n\n… and {len(frame) - len(shown)} more." if len(shown) < len(frame) else ""
    return _table(table(shown).drop(columns="verdict")) + left


def _table(shown: pd.DataFrame) -> str:
    rows = [list(shown.columns), ["---"] * len(shown.columns)]
    rows += [[escaped(cell) for cell in row] for row in shown.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def escaped(text: str) -> str:
    """Return text that Markdown and HTML leave as it is, on one line."""
    flat = " ".join(html.escape(str(text), quote=False).split())
    # An @ would notify somebody; a letter before and after a _ keeps it plain.
    marked = re.sub(r"([\\`*\[\]|~])", r"\\\1", flat).replace("@", "&#64;")
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", marked)
