"""What a page of a terminal or of Markdown consists of: lines, headings and tables of text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table
    from rich.text import Text


class Heading(str):
    """A line that stands out."""


class Rows:
    """Rows of text by column, for a table without pandas, which takes half a second to import."""

    def __init__(self, rows: Sequence[dict[str, str]]) -> None:
        self.columns = list(rows[0])
        self.rows = [list(row.values()) for row in rows]

    def itertuples(self, index: bool = True) -> Iterator[Sequence[str]]:
        """Yield the cells of each row, as a frame does."""
        return iter(self.rows)


@dataclass(frozen=True)
class TextTable:
    """A table of text, one cell a column and row."""

    frame: pd.DataFrame | Rows
    left: Collection[str] = ()
    """Columns aligned at the left, with the first, and the second if it has no numbers."""
    cut: Collection[str] = ()
    """Columns of texts that end with `…` where there is no place for them."""
    dropped: Sequence[str] = ()
    """Columns that are left out, in this order, where the table is too wide for its place."""
    compact: pd.DataFrame | None = None
    """The same with shorter cells, where the whole is too wide."""
    last: Collection[str] = ()
    """Columns that are left out after all others."""


Part: TypeAlias = "str | Heading | TextTable | Table | Text"
"""What a page consists of."""
