"""The pages of the site that are no file in docs/."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from command_line import command_line_page
from notebook_page import notebook_page


@dataclass(frozen=True)
class MadePage:
    """A page, and the file of the repository that it stands for."""

    uri: str
    source: str
    text: str


def made_pages(root: Path) -> Iterator[MadePage]:
    """Yield the pages that the repository at `root` holds elsewhere."""
    yield MadePage("index.md", "README.md", (root / "README.md").read_text())
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        yield MadePage(name.lower(), name, (root / name).read_text())
    notebook = root / "docs" / "analysis.ipynb"
    yield MadePage("analysis.md", "docs/analysis.ipynb", notebook_page(notebook))
    yield MadePage("reference/command-line.md", "harness/cli/__init__.py", command_line_page())
