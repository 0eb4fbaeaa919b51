"""The report's figures as images, from the same specifications."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import vl_convert

from harness.frame.frame import rows_of
from harness.records.files import replaced
from harness.report.charts import CONFIG
from harness.report.content import ColumnKind, Figure, Report, Table
from harness.report.files import FONT
from harness.report.page import rounded, specification

INK = "#1a1a1a"
"""What stands for the page's colour of text in an image."""

WIDTH = 640
"""Pixels of the drawing itself, without the labels."""

LABELS = 420
"""Pixels that a label at an axis may take."""


def write(report: Report, folder: Path, png: bool = False) -> list[Path]:
    """Write each figure as `FIGURE.svg`, and as `FIGURE.png` if `png`; return the files.

    Raises:
        StoreError: a file cannot be written.
    """
    tables = {table.name: table for section in report.sections for table in section.tables}
    written = []
    remedy = "Choose another place with --figures."
    for section in report.sections:
        for figure in section.figures:
            spec = complete(figure, tables)
            made = {".svg": vl_convert.vegalite_to_svg(spec).encode()}
            if png:
                made[".png"] = vl_convert.vegalite_to_png(spec, scale=2)
            for suffix, data in made.items():
                path = folder / f"{figure.name}{suffix}"
                with replaced(path, "wb", remedy) as handle:
                    handle.write(data)
                written.append(path)
    return written


def complete(figure: Figure, tables: dict[str, Table]) -> dict[str, Any]:
    """Return a figure's specification with its data, title and colours inside."""
    spec = specification(figure.chart)
    subtitle = " · ".join(f"{label}: {start}" for _, label, start in figure.picks)
    title: dict[str, Any] = {"text": figure.title, "anchor": "start", "color": INK}
    config = json.loads(json.dumps(CONFIG).replace("currentColor", INK))
    own = {"background": "white", "font": FONT, "axis": config["axis"] | {"labelLimit": LABELS}}
    return spec | {
        "title": title | ({"subtitle": subtitle, "subtitleColor": INK} if subtitle else {}),
        "width": WIDTH,
        "config": config | own,
        "datasets": {name: rows(figure, tables[name]) for name in figure.tables},
    }


def rows(figure: Figure, table: Table) -> list[dict[str, Any]]:
    """Return the rows of a table that a figure begins with, lists as a row per element."""
    names = [column.name for column in table.columns]
    data = table.data[names]
    for name, _, start in figure.picks:
        if name in names:
            data = data[data[name].astype(str) == start]
    lists = {column.name for column in table.columns if column.kind == ColumnKind.LIST}
    data = data.explode([name for name in figure.explode if name in lists]) if lists else data
    return [
        {name: value if isinstance(value, str) else rounded(value) for name, value in row.items()}
        for row in rows_of(data)
    ]
