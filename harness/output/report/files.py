"""Files beside the page: charts, and asv's page, which links to it; the packages that they need."""

from __future__ import annotations

import importlib.util
import re
import urllib.parse
from pathlib import Path
from typing import Any

from harness.errors import StoreError, UsageError
from harness.records.files import replaced
from harness.records.installation import command_for

FONT = "DejaVu Sans, Verdana, sans-serif"
"""Of text in pictures. The room for it is measured when a picture is made, with the first of these;
the others are as wide, so that nothing is cut off where it is looked at."""

_PHONES = '<meta name="viewport" content="width=device-width, initial-scale=1">'
"""Has phones show a page at their own width."""

_PACKAGES = {"altair": "altair", "vl_convert": "vl-convert-python", "jinja2": "jinja2"}


def _absent(*modules: str) -> list[str]:
    return [_PACKAGES[name] for name in modules if not importlib.util.find_spec(name)]


def check_figure(output: Path) -> None:
    """Raise :class:`UsageError` if no figure could be drawn into `output`."""
    if output.suffix not in (".svg", ".png", ".html"):
        raise UsageError(f"--figure {output}: expected a name that ends in .svg, .png or .html.")
    for package in _absent("altair", "vl_convert"):
        raise UsageError(
            f"--figure needs {package}, which is not installed: {command_for('figures')}."
        )


def check_report() -> None:
    """Raise :class:`UsageError` if a package that the report needs is not installed."""
    absent = _absent(*_PACKAGES)
    if absent:
        raise UsageError(
            f"The report needs {' and '.join(absent)}, not installed here: "
            f"{command_for('figures')}."
        )


def save_figure(chart: Any, output: Path) -> None:
    """Write an altair chart into a `.svg`, `.png` or `.html` file.

    Raises:
        StoreError: the file cannot be written.
    """
    chart = chart.copy(deep=False)
    chart.config = {**(chart.to_dict().get("config") or {}), "font": FONT}
    is_png = output.suffix == ".png"
    remedy = "Choose another place with --figure."
    with replaced(output, "wb" if is_png else "w", remedy) as handle:
        if output.suffix == ".html":
            page = str(chart.to_html(inline=True))
            handle.write(page.replace("<head>", f"<head>\n  {_PHONES}", 1))
        else:
            chart.save(handle, format=output.suffix[1:], scale_factor=2 if is_png else 1)


ASV_REPORT = "report.html"
"""The report's name in asv's folder."""

_MARK = "harness-report"
_LINK = f'<li id="{_MARK}"><a href="{ASV_REPORT}">Report</a></li>'


def check_asv(folder: Path) -> None:
    """Raise :class:`UsageError` if asv has not published into a folder."""
    if not (folder / "index.html").is_file():
        raise UsageError(
            f"{folder} holds no index.html: expected the folder that `asv publish` writes "
            "(html_dir of asv.conf.json). Run it first."
        )


def link_asv(folder: Path) -> bool:
    """Put one link to the report into asv's index.html; False if it was there already.

    It stands in the bar of navigation, or else at the page's end.

    `asv publish` writes index.html anew, so this comes after it, every time.

    Raises:
        StoreError: the page cannot be read or written.
    """
    page = folder / "index.html"
    try:
        text = page.read_text(encoding="utf-8")
        if _MARK in text:
            return False
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{page} cannot be changed: {error}.") from error
    linked = re.sub(r'(?=<li id="nav-li-graphdisplay"|</body>|\Z)', _LINK, text, count=1)
    with replaced(page, remedy="Give another folder.") as handle:
        handle.write(linked)
    return True


def asv_links(asv: str) -> list[tuple[str, str]]:
    """Return the link to asv's pages, none for "".

    Raises:
        UsageError: `asv` is neither a path nor an address of the web.
    """
    if not asv:
        return []
    if urllib.parse.urlsplit(asv).scheme not in ("", "http", "https", "file"):
        raise UsageError(f"--asv {asv}: expected a path, or an address with http: or https:.")
    return [("asv’s pages", asv)]
