"""Colours for the texts of programs, and for their differences, on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from harness.records.printable import printable

_STYLES = [
    (re.compile(r"\b(?:HloModule|ENTRY|ROOT|module|func\.func|return|lambda|let|in)\b"), "bold"),
    # What is done: HLO after its type, StableHLO by dialect, jaxpr after the equals sign.
    (re.compile(r"(?<=[\]})] )[a-z][\w\-]*(?=\()"), "bold blue"),
    (re.compile(r'\b(?:stablehlo|chlo|mhlo|sdy)\.\w+|"[a-z]\w*\.\w+"'), "bold blue"),
    (re.compile(r"(?<= = )[a-z_]\w*(?=\[| [a-z\d]|$)"), "bold blue"),
    # What it is done on.
    (re.compile(r"tensor<[^>]*>|\b(?:[a-z]+\d+\w*|pred|bool|token|key<\w+>)\[[^\]]*\]"), "green"),
    (re.compile(r"[%@][\w.\-]+"), "cyan"),
    (re.compile(r'"(?:[^"\\]|\\.)*"'), "yellow"),
    (re.compile(r"metadata=\{.*?\}|\bloc\(.*?\)|(?:^| )# .*$"), "dim"),
]

_CHANGED = {"+": "green", "-": "red", "@": "cyan"}


def program(text: str) -> Iterator[Text]:
    """Yield the lines of a jaxpr, of StableHLO or of HLO in colour."""
    for line in text.splitlines():
        shown = Text(printable(line, "\t"))
        for pattern, style in _STYLES:
            shown.highlight_regex(pattern, style)
        yield shown


def difference(text: str) -> Iterator[Text]:
    """Yield the lines of a unified diff in colour."""
    for line in text.splitlines():
        yield Text(printable(line, "\t"), _CHANGED.get(line[:1], ""))
