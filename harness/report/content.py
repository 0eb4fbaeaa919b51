"""What a report is made of: sections of tables and figures, before they become a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

TEXT, COUNT, SECONDS, BYTES, NUMBER, RATIO, SHARE, LIST = (
    *("text", "count", "seconds", "bytes", "number", "ratio", "share"),
    "list",
)
"""Kinds of columns: how their values are encoded, shown and sorted. A list holds numbers."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    label: str
    kind: str = TEXT
    stage: str = ""
    """The stage that the column holds; hidden while the page shows another one."""
    hidden: bool = False
    """Whether only the figures and the filters need it."""


@dataclass(frozen=True)
class Table:
    """Rows that figures draw and readers read; embedded once, however many figures use it."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    data: pd.DataFrame
    """Has every column by its name; NaN and None where nothing is known."""


@dataclass(frozen=True)
class Figure:
    """A figure: an altair chart whose data has the names of tables."""

    name: str
    title: str
    summary: str
    """In words what the figure shows, for whoever does not see it."""
    chart: Any
    tables: tuple[str, ...]
    """The tables that it draws; the first is the one that filters and picks act on."""
    picks: tuple[tuple[str, str, str], ...] = ()
    """Columns of which one value is shown at a time, their labels, and the value to begin with."""
    explode: tuple[str, ...] = ()
    """Columns that hold lists, of which each element becomes a row."""


@dataclass(frozen=True)
class Section:
    """One part of the page."""

    name: str
    title: str
    intro: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    shown: tuple[str, ...] = ()
    """The names of the tables that are shown for themselves."""
    missing: str = ""
    """Where there is nothing to show: what would fill the section, and the command."""
    command: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything that a page says."""

    title: str
    answers: tuple[tuple[str, tuple[str, ...], str], ...]
    """What the top of the page answers: a question, the answer in lines, the section behind it."""
    sections: tuple[Section, ...]
    links: tuple[tuple[str, str], ...] = field(default=())
    """Text and address of links to other pages."""
