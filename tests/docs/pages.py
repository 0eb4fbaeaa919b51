"""The code blocks of the pages, as a Markdown parser sees them, and the marks above them.

A mark is a comment of HTML, which no reader sees: `<!-- not executed: needs a GPU -->`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
SHELL = ("sh", "bash", "console")
_MARK = re.compile(r"<!--\s*(?P<word>[a-z][a-z ]*?)\s*(?::\s*(?P<text>.*?))?\s*-->", re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
# What a block without a language is: a command, or what a command said.
_COMMAND = re.compile(
    r"\$? ?(?:[A-Z_]+=\S+ )*(?:harness|asv|make|pip|python3?|pytest|git|source|srun|kubectl) "
)


@dataclass(frozen=True)
class Block:
    """A code block: `page` from the repository's root, `line` from 1, and the text's `end` line."""

    page: str
    line: int
    end: int
    language: str
    title: str
    text: str
    marks: tuple[tuple[str, str], ...]

    @property
    def where(self) -> str:
        """The page and the line."""
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> str:
        """`python`, `sh`, or nothing for a block that shows something."""
        if self.language == "python":
            return "python"
        if self.language in SHELL:
            return "sh"
        return "sh" if not self.language and _COMMAND.match(self.text) else ""

    def mark(self, word: str) -> str | None:
        """Return what a mark of this word says; None without one."""
        return dict(self.marks).get(word)


def pages() -> list[str]:
    """Return the Markdown pages that users read."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def blocks(page: str, text: str | None = None) -> list[Block]:
    """Return the code blocks of a page, in order; `text` stands for what the file holds."""
    if text is None:
        text = (ROOT / page).read_text(encoding="utf-8")
    found: list[Block] = []
    marks: list[tuple[str, str]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "html_block":
            marks += [(m["word"], m["text"] or "") for m in _MARK.finditer(token.content)]
        elif token.type in ("fence", "code_block"):
            assert token.map is not None
            title = _TITLE.search(token.info)
            found.append(
                Block(
                    page,
                    token.map[0] + 1,
                    token.map[1],
                    token.info.split()[0] if token.info else "",
                    title[1] if title else "",
                    token.content,
                    tuple(marks),
                )
            )
            marks = []
        elif token.type.endswith("_open"):
            marks = []
    return found
