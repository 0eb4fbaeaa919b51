"""The report beside asv's pages: each links to the other."""

from __future__ import annotations

import urllib.parse
from pathlib import Path

from harness.errors import StoreError, UsageError
from harness.records.files import replaced

NAME = "report.html"
"""The report's name in asv's folder."""

_MARK = "harness-report"
_LINK = f'<li id="{_MARK}"><a href="{NAME}">Report</a></li>'
_PLACES = ('<li id="nav-li-graphdisplay"', "</body>")
"""Before the first of them that the page holds; the one is in asv's bar of navigation."""


def check(folder: Path) -> None:
    """Raise :class:`UsageError` if asv has not published into a folder."""
    if not (folder / "index.html").is_file():
        raise UsageError(
            f"{folder} holds no index.html: expected the folder that `asv publish` writes "
            "(html_dir of asv.conf.json). Run it first."
        )


def link(folder: Path) -> bool:
    """Put one link to the report into asv's index.html; False if it was there already.

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
    with replaced(page, remedy="Give another folder.") as handle:
        handle.write(linked(text))
    return True


def linked(text: str) -> str:
    """Return asv's page with the link."""
    place = next((place for place in _PLACES if place in text), "")
    if not place:
        return text + _LINK
    return text.replace(place, _LINK + place, 1)


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
