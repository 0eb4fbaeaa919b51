"""The steps of writing a report, for the command line and for whoever has a frame at hand."""

from __future__ import annotations

import importlib.util
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import StoreError, UsageError
from harness.report.content import Report

if TYPE_CHECKING:
    import pandas as pd


def check() -> None:
    """Raise :class:`UsageError` if a package that the report needs is not installed."""
    needed = {"altair": "altair", "jinja2": "jinja2", "vl_convert": "vl-convert-python"}
    absent = [package for name, package in needed.items() if not importlib.util.find_spec(name)]
    if absent:
        raise UsageError(
            f"The report needs {' and '.join(absent)}, not installed here: pip install "
            "'jax-harness[figures]'."
        )


def links(asv: str) -> list[tuple[str, str]]:
    """Return the link to asv's pages, none for "".

    Raises:
        UsageError: `asv` is neither a path nor an address of the web.
    """
    if not asv:
        return []
    if urllib.parse.urlsplit(asv).scheme not in ("", "http", "https", "file"):
        raise UsageError(f"--asv {asv}: expected a path, or an address with http: or https:.")
    return [("asv’s pages", asv)]


def assembled(
    path: Path,
    frame: pd.DataFrame,
    comparisons: pd.DataFrame,
    pages: list[tuple[str, str]],
) -> Report:
    """Return the report on a results tree at `path`, of which both frames are."""
    from harness.report.assembling import assemble, error_rates

    rates = error_rates(path, frame)
    return assemble(frame, comparisons, rates, pages)


def write(report: Report, output: Path) -> int:
    """Write a report's page, and return its size in bytes.

    Raises:
        StoreError: the file cannot be written.
    """
    from harness.report.page import render

    page = render(report).encode()
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(page)
    except OSError as error:
        raise StoreError(
            f"{output} cannot be written: {error.strerror or error}. Choose another place with -o."
        ) from error
    return len(page)
