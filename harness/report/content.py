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
    digits: int = 4
    """Significant digits of its numbers that are embedded."""


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
    zoom: bool = False
    """Whether readers may move the chart's parameters `from` and `to`, the ends of its x axis."""


@dataclass(frozen=True)
class Node:
    """A line of a tree."""

    text: str
    value: str
    """What is said at its end."""
    note: str = ""
    """What is said where it is pointed at."""
    share: float = 0.0
    """Of the whole, from 0 to 1: the length of its bar."""
    soft: bool = False
    """Whether it matters less than others."""
    open: bool = False
    """Whether what is beneath it is shown from the start."""
    children: tuple[Node, ...] = ()


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
    tree: tuple[Node, ...] = ()
    """Lines that hold others, the most important first."""


@dataclass(frozen=True)
class Filters:
    """What the bar of filters offers; it acts on tables that have the columns."""

    label: str = "Workload"
    """Of the field for text."""
    search: tuple[str, ...] = ("workload",)
    """Columns that the text may be in."""
    choices: tuple[str, ...] = ("target", "stage", "machine")
    """Columns of which one value is chosen."""
    counted: str = "stages"
    """The table whose rows are counted beside the filters."""
    noun: str = "measurements"
    """What those rows are."""


@dataclass(frozen=True)
class Report:
    """Everything that a page says."""

    title: str
    answers: tuple[tuple[str, tuple[str, ...], str], ...]
    """What the top of the page answers: a question, the answer in lines, the section behind it."""
    sections: tuple[Section, ...]
    links: tuple[tuple[str, str], ...] = field(default=())
    """Text and address of links to other pages."""
    filters: Filters = field(default=Filters())
