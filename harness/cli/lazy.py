"""Groups of commands, loaded when they are invoked, and how the help of each is written."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import click

from harness.errors import ExitCode

WIDEST = 104
"""Columns of a terminal beyond which help gets no wider."""

_LEAST = 28
"""Characters that a column beside a command has at least; with fewer it stands below."""

_COLUMNS = re.compile(r"(\s*\S.*?\s{2,})(\S.*)")


class Formatter(click.HelpFormatter):
    r"""Click's, and a paragraph after `\b` stays as it is only where that fits."""

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        width = self.width - self.current_indent
        paragraphs = text.split("\n\n")
        super().write_text("\n\n".join(_fitted(each, width) for each in paragraphs))


class HelpContext(click.Context):
    """Click's, with that formatter."""

    formatter_class = Formatter


class Command(click.Command):
    """Click's, with that context."""

    context_class = HelpContext


@dataclass
class _Item:
    """A line, and those that go on with it."""

    left: str
    """A command or a word, with the gap behind it; or spaces."""
    text: list[str] = field(default_factory=list)

    def goes_on_with(self, line: str) -> bool:
        """Tell whether a line of the source is more of the same text."""
        lead = len(line) - len(line.lstrip())
        if lead == 0:
            return not self.left and len(self.text[-1]) > 60 and not line.startswith("Exit codes")
        return lead >= 8 and lead == len(self.left) and not _COLUMNS.fullmatch(line)

    def lines(self, width: int) -> Iterator[str]:
        """Yield what is shown; a command alone is never broken."""
        if len(whole := self.left + " ".join(self.text)) <= width:
            yield whole
            return
        hang = len(self.left) if len(self.left) <= width - _LEAST else 6
        if self.left.strip() and hang < len(self.left):
            yield self.left.rstrip()
        first = self.left if hang == len(self.left) else " " * hang
        yield from textwrap.wrap(
            " ".join(self.text),
            width,
            initial_indent=first,
            subsequent_indent=" " * hang,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _fitted(paragraph: str, width: int) -> str:
    mark, *lines = paragraph.strip("\n").split("\n")
    if mark.strip() != "\b" or max(map(len, lines)) <= width:
        return paragraph
    items: list[_Item | str] = []
    for line in lines:
        before = items[-1] if items else ""
        if isinstance(before, _Item) and before.goes_on_with(line):
            before.text.append(line.strip())
        elif columns := _COLUMNS.fullmatch(line):
            items.append(_Item(columns[1], [columns[2]]))
        elif line.startswith(" " * 8) or not line.startswith(" "):
            text = line.lstrip()
            items.append(_Item(line.removesuffix(text), [text]))
        else:
            items.append(line)
    shown = (item.lines(width) if isinstance(item, _Item) else [item] for item in items)
    return "\n".join(["\b", *(line for each in shown for line in each)])


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": WIDEST}
"""Of the context of every command and group of commands."""


@dataclass(frozen=True)
class Lazy:
    """A command that is not loaded yet."""

    place: str
    """`module:name`, in this folder."""
    help: str
    """Its line in the help of the group."""
    needs: str = ""
    """The room without which there is no such command."""


@contextmanager
def _while_read() -> Iterator[None]:
    """End where the reader, a pager or `head`, has seen enough."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left to flush
        sys.exit(ExitCode.UNREAD)


class LazyGroup(click.Group):
    """A group of commands that are not loaded yet."""

    context_class = HelpContext

    def __init__(self, *, lazy: Mapping[str, Lazy], **given: Any) -> None:
        super().__init__(no_args_is_help=True, context_settings=SETTINGS, **given)
        self._lazy = {
            name: one
            for name, one in lazy.items()
            if not one.needs or importlib.util.find_spec(one.needs)
        }
        for name, one in self._lazy.items():
            self.add_command(click.Command(name, help=one.help))

    def make_context(self, *given: Any, **named: Any) -> click.Context:
        """Read the command line; `--help` prints here."""
        with _while_read():
            return super().make_context(*given, **named)

    def invoke(self, ctx: click.Context) -> Any:
        """Carry out a command."""
        with _while_read():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which they are told."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None where there is none of that name."""
        if cmd_name not in self._lazy:
            return None
        module, _, name = self._lazy[cmd_name].place.partition(":")
        return getattr(importlib.import_module(f"harness.cli.{module}"), name)  # type: ignore[no-any-return]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each command, without loading it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.help) for name, one in self._lazy.items()])
