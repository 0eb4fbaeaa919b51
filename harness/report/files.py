"""Charts as files, and whether the packages for charts and reports are installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.records.files import replaced

FONT = "DejaVu Sans, Verdana, sans-serif"
"""Of text in pictures. The room for it is measured when a picture is made, with the first of these;
the others are as wide, so that nothing is cut off where it is looked at."""

_PHONES = '<meta name="viewport" content="width=device-width, initial-scale=1">'
"""Has phones show a page at their own width."""

_PACKAGES = {"altair": "altair", "vl_convert": "vl-convert-python", "jinja2": "jinja2"}
_REMEDY = "pip install 'jax-harness[figures]'."


def _absent(*modules: str) -> list[str]:
    return [_PACKAGES[name] for name in modules if not importlib.util.find_spec(name)]


def check_figure(output: Path) -> None:
    """Raise :class:`UsageError` if no figure could be drawn into `output`."""
    if output.suffix not in (".svg", ".png", ".html"):
        raise UsageError(f"--figure {output}: expected a name that ends in .svg, .png or .html.")
    for package in _absent("altair", "vl_convert"):
        raise UsageError(f"--figure needs {package}, which is not installed: {_REMEDY}")


def check_report() -> None:
    """Raise :class:`UsageError` if a package that the report needs is not installed."""
    absent = _absent(*_PACKAGES)
    if absent:
        raise UsageError(f"The report needs {' and '.join(absent)}, not installed here: {_REMEDY}")


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
