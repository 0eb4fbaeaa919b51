"""What a report is made of: sections of tables and figures, before they become a page."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
"""What a report is about: results, or a profile."""


class ColumnKind(enum.StrEnum):
    """The kinds of columns: how their values are encoded, shown and sorted."""

    TEXT = enum.auto()
    COUNT = enum.auto()
    SECONDS = enum.auto()
    BYTES = enum.auto()
    NUMBER = enum.auto()
    RATIO = enum.auto()
    SHARE = enum.auto()
    LIST = enum.auto()
    """Of numbers, each of which a figure draws as a row."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    label: str
    kind: ColumnKind = ColumnKind.TEXT
    stage: str = ""
    """The stage that the column holds; hidden while the page shows another one."""
    hidden: bool = False
    """Whether only the figures and the filters need it."""
    digits: int = 4
    """Significant digits of its numbers that are embedded."""


def plain(*names: str, hidden: bool = False) -> tuple[Column, ...]:
    """Return columns of text that are called as in the data."""
    return tuple(Column(name, name, hidden=hidden) for name in names)


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
    most: str = ""
    """The column by whose sums its chart draws cases (:func:`harness.output.report.charts.top`): a
    page hands it no rows but those of the greatest."""
    drawn: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """With `most`: columns of which the chart draws these values alone."""


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
class Content:
    """What a section shows of what a report is about; the section itself adds what it is called."""

    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    shown: tuple[str, ...] = ()
    """The names of the tables that are shown for themselves."""
    pair: tuple[str, str] | None = None
    """A table with lists `at` and `value`, and the table of what `at` counts: any two of it are
    shown side by side."""
    notes: tuple[str, ...] = ()
    tree: tuple[Node, ...] = ()
    """Lines that hold others, the most important first."""
    intro: str = ""
    """Said in place of the section's own."""
    missing: str = ""
    """Where there is nothing to show: what would fill the section, and the command."""
    command: str = ""
    name: str = ""
    title: str = ""


@dataclass(frozen=True)
class Section(Generic[T]):
    """One section of a report: what it asks, how it is filled, and what is said without data."""

    name: str
    title: str
    intro: str
    """The question that it answers, and how to read the answer."""
    content: Callable[[T], Content | None]
    """Fills it; None where there is nothing to show."""
    missing: str = ""
    """What is said where there is nothing to show; without it the section is then left out."""
    command: str = ""
    """What would fill it."""
    answer: tuple[int, str, Callable[[T], tuple[str, ...]]] | None = None
    """What it says at the top of the page: the place among the answers, a question, lines."""

    def __post_init__(self) -> None:
        if self.missing and not self.command:
            raise TypeError(f"The section {self.name!r} lacks a command.")

    def part(self, subject: T) -> Content | None:
        """Return what the page shows of it, None where it is left out."""
        content = self.content(subject)
        if content is None:
            if not self.missing:
                return None
            content = Content(missing=self.missing, command=self.command)
        return replace(content, name=self.name, title=self.title, intro=content.intro or self.intro)


@dataclass(frozen=True)
class FilterBar:
    """What the bar of filters offers; it acts on tables that have the columns."""

    label: str = "Workload"
    """Of the field for text."""
    search: tuple[str, ...] = ("workload",)
    """Columns that the text may be in."""
    choices: tuple[str, ...] = ("one_case", "target", "stage", "machine", "change")
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
    sections: tuple[Content, ...]
    views: tuple[tuple[str, str], ...] = ()
    """Text and address, from `?` on, of what is often looked at in the page."""
    links: tuple[tuple[str, str], ...] = ()
    """Text and address of links to other pages."""
    filters: FilterBar = FilterBar()

    @property
    def figures(self) -> list[Figure]:
        """All figures, in the order of the page."""
        return [figure for section in self.sections for figure in section.figures]

    @property
    def tables(self) -> dict[str, Table]:
        """All tables, by name."""
        return {table.name: table for section in self.sections for table in section.tables}


def assemble(title: str, sections: Sequence[Section[T]], subject: T, **others: Any) -> Report:
    """Return the report on a subject; `others` are further fields of it."""
    parts = [part for section in sections if (part := section.part(subject)) is not None]
    answering = sorted((*section.answer, section.name) for section in sections if section.answer)
    answers = [(question, lines(subject), name) for _, question, lines, name in answering]
    return Report(title, tuple(answers), tuple(parts), **others)
