"""A comparison as Markdown for a pull request: what changed on top, the rest folded."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from harness.output import comparison as summary
from harness.output import programs
from harness.output.verdicts import environment_lines, reasons_of, sentence
from harness.records.printable import escaped, table_lines
from harness.verdicts import verdict
from harness.verdicts.programs import by_case
from harness.verdicts.table import ordered

if TYPE_CHECKING:
    from harness.verdicts.compare import Comparison

MOST_CHARACTERS = 60_000
"""Of all tables and what stands around them; GitHub takes no comment of more than 65,536."""

MOST_ROWS = 1_000
"""More do not fit into so many characters."""

CUT = "… cut here, for the length that a comment may have: `--all` lists every row."


def to_markdown(comparison: Comparison, every: bool = False, inside: Sequence[str] = ()) -> str:
    """Return a comparison as Markdown that fits into a comment.

    Rows that are `same` are only counted, and tables end where the room does, unless `every`.
    `inside` says what became of compiles, as :func:`harness.output.inside.lines` does.
    """
    frame = ordered(reasons_of(comparison, facts=False))
    answer = sentence(comparison).replace("`", "")  # bold stands for it
    unlike = frame["reason"][frame["problem"].isin(["machines", "one name"])]
    warnings = [*dict.fromkeys(unlike), *summary.warning_lines(comparison)]
    above = [f"**{escaped(answer)}.**", *(f"> **Warning:** {escaped(line)}" for line in warnings)]
    above += [escaped(summary.summary_text(frame)), escaped(summary.heading(comparison))]
    above += [escaped(line) for line in environment_lines(comparison.frame)]
    above += [escaped(line) for line in summary.left_out_lines(comparison)]
    above += [f"**{escaped(line)}**" for line in summary.stage_lines(frame)]
    other = list(programs.changed_lines(by_case(comparison.pairs)))
    for first, *rest in filter(None, (other, inside)):
        above.append("\n".join([first, "", *(f"- {escaped(one.strip())}" for one in rest)]))
    overview = summary.overview(frame)
    if len(overview):
        above.append("\n".join(_lines(overview)))
    notes = (*summary.legend(comparison), *summary.footer(comparison))
    below = [f"<sub>{escaped(line)}</sub>" for line in notes]
    room = None if every else MOST_CHARACTERS - sum(map(len, (*above, *below)))
    tables = []
    for kind in verdict.KINDS:
        rows = frame[frame["verdict"] == kind]
        if rows.empty or (kind == verdict.SAME and not every):
            continue
        text = _table(rows, room)
        room = None if room is None else room - len(text)
        if kind not in (verdict.UNSURE, verdict.INCOMPARABLE, verdict.SAME):
            tables += [f"### {kind.capitalize()}", text]
        else:
            title = f"<summary>{len(rows)} {kind}</summary>"
            tables.append(f"<details>{title}\n\n{text}\n\n</details>")
    return "\n\n".join([*above, *tables, *below])


def _table(frame: pd.DataFrame, room: int | None) -> str:
    """Return a table of as many rows as there is room for, in characters; all of them for None."""
    shown = summary.table(frame if room is None else frame.iloc[:MOST_ROWS])
    lines = _lines(shown.drop(columns="verdict"))
    if room is None:
        return "\n".join(lines)
    ends = itertools.accumulate(len(line) + 1 for line in lines)
    kept = [line for line, end in zip(lines, ends, strict=True) if end <= room]
    is_cut = len(kept) < len(lines) or len(frame) > MOST_ROWS
    return "\n".join(kept) + (f"\n\n{CUT}" if is_cut else "")


def _lines(shown: pd.DataFrame) -> list[str]:
    return table_lines(list(shown.columns), shown.to_numpy().tolist())
