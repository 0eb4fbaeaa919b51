"""From the report to a page, one HTML file that loads nothing; and its figures as images.

Tables are embedded as compact JSON: by column, text by dictionary, numbers to few digits. The JSON
is compressed, so that a year of nights is one file that can be sent.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import json
import math
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import pandas as pd
import vl_convert

from harness.frame.frame import rows_of
from harness.output.report.charts import CONFIG
from harness.output.report.content import Column, ColumnKind, Figure, Report, Table
from harness.output.report.files import FONT
from harness.records.files import replaced

INK = "#1a1a1a"
"""What stands for the page's colour of text in an image."""

WIDTH = 640
"""Of an image: pixels of the drawing itself, without the labels."""

LABELS = 420
"""Of an image: pixels that a label at an axis may take."""


def save(report: Report, output: Path) -> int:
    """Write a report's page, and return its size in bytes.

    Raises:
        StoreError: the file cannot be written.
    """
    page = render(report).encode()
    with replaced(output, "wb") as handle:
        handle.write(page)
    return len(page)


def render(report: Report) -> str:
    """Return the page: style, scripts and data inside, and a policy that forbids any other.

    The policy names the scripts by their hash and allows no evaluation of text: Vega
    interprets its expressions instead of compiling them.
    """
    templates = resources.files("harness.output.report") / "templates"
    zooms = any(figure.zoom for figure in report.figures)
    scripts = [
        _vega(),
        *([_inline(_read(templates, "zoom.js"))] if zooms else []),
        _inline(_read(templates, "page.js")),
    ]
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    policy = (
        f"default-src 'none'; script-src {allowed}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["code"] = _code
    template = environment.from_string(_read(templates, "page.html"))
    return template.render(
        report=report,
        policy=policy,
        filters=_filters(report),
        # Our own files stand in the page as they are.
        style=markupsafe.Markup(_read(templates, "page.css")),
        data=packed(_data(report)),
        scripts=[markupsafe.Markup(script) for script in scripts],
    )


def _code(text: str) -> markupsafe.Markup:
    """Return text with code between backticks; names break behind signs, numbers never."""
    broken = re.sub(r"(?<=\w[._/])(?![\d\s])", "<wbr>", str(markupsafe.escape(text)))
    # An option of a command is not broken behind its dashes.
    whole = re.sub(r"(?<![\w-])(--[\w-]+)", r'<span class="option">\1</span>', broken)
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", whole))


@functools.cache
def _vega() -> str:
    return _inline(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _read(folder: Any, name: str) -> str:
    return str((folder / name).read_text(encoding="utf-8"))


def _inline(script: str) -> str:
    """Return a script that can stand in a page: HTML would end it at its end tag."""
    script = script.replace("\r\n", "\n").replace("\r", "\n")
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _data(report: Report) -> dict[str, Any]:
    return {
        "config": CONFIG,
        "filters": vars(report.filters),
        "tables": {name: encode(table) for name, table in report.tables.items()},
        "figures": {
            figure.name: {
                **{name: value for name, value in vars(figure).items() if name != "chart"},
                "spec": specification(figure.chart),
            }
            for figure in report.figures
        },
    }


def specification(chart: Any) -> dict[str, Any]:
    """Return an altair chart as a Vega-Lite specification without a configuration of its own."""
    spec: dict[str, Any] = chart.to_dict()
    del spec["config"]
    return spec


def _filters(report: Report) -> dict[str, list[str]]:
    """Return the values that each of the filters offers, by its column."""
    choices: dict[str, dict[str, None]] = {name: {} for name in report.filters.choices}
    for table in report.tables.values():
        names = {column.name for column in table.columns}
        for name, values in choices.items():
            if name in names:
                values |= dict.fromkeys(filter(None, map(str, table.data[name].unique())))
        if "stage" in choices:
            choices["stage"] |= {column.stage: None for column in table.columns if column.stage}
    return {name: list(values) for name, values in choices.items()}


def encode(table: Table) -> dict[str, Any]:
    """Return a table as plain data: its columns, and the values of each under its name.

    Text is `{"d": distinct values, "i": the place of each row's value in them}`, and so are lists,
    of which many rows share one. Numbers are a list with null for what is not known.
    """
    return {
        "caption": table.caption,
        "columns": [
            {name: value for name, value in vars(column).items() if value}
            for column in table.columns
        ],
        "length": len(table.data),
        "values": {column.name: _values(table, column) for column in table.columns},
    }


def _values(table: Table, column: Column) -> Any:
    values = table.data[column.name]
    if column.kind not in (ColumnKind.TEXT, ColumnKind.LIST):
        return [rounded(value, column.digits) for value in values.tolist()]
    if column.kind == ColumnKind.LIST:
        values = values.map(
            lambda numbers: json.dumps([*map(rounded, numbers)], separators=(",", ":"))
        )
    places, distinct = pd.factorize(values.fillna("").astype(str))
    return {"i": places.tolist(), "d": distinct.tolist()}


def rounded(value: Any, digits: int = 4) -> float | int | None:
    """Return a number to some significant digits, None for one that is not known."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def packed(data: Any) -> str:
    """Return data as JSON in gzip in base64, whose letters close no element of a page."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def write_images(report: Report, folder: Path, png: bool = False) -> list[Path]:
    """Write each figure as `FIGURE.svg`, and as `FIGURE.png` if `png`; return the files.

    Raises:
        StoreError: a file cannot be written.
    """
    written = []
    for figure in report.figures:
        spec = complete(figure, report.tables)
        made = {".svg": vl_convert.vegalite_to_svg(spec).encode()}
        if png:
            made[".png"] = vl_convert.vegalite_to_png(spec, scale=2)
        for suffix, data in made.items():
            path = folder / f"{figure.name}{suffix}"
            with replaced(path, "wb", "Choose another place with --figures.") as handle:
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
