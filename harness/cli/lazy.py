"""Groups of commands, loaded when they are invoked, and how the help of each is written."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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


MOST_EXAMPLES = 6
"""Lines of examples in `--help`; `--help-all` has the others."""

_ALL = "Every option and rule, and the exit codes."
WHOLE = "harness.whole_help"
"""Of a context's `meta`: whether its help has every option."""


def _print_whole(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        context.meta[WHOLE] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


class Command(click.Command):
    """Click's, with that context; `--help` is one screen, and `--help-all` the rest.

    Args:
        common: names of the parameters whose options `--help` lists.
        given: as of click's.
    """

    context_class = HelpContext

    def __init__(self, name: str | None, *, common: str = "", **given: Any) -> None:
        super().__init__(name, **given)
        self.common = common.split()
        whole = click.Option(
            ["--help-all"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            help=_ALL,
            callback=_print_whole,
        )
        self.params.append(whole)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; of arguments without any, all that are missing are named."""
        needed = [one for one in self.params if isinstance(one, click.Argument) and one.required]
        if args or ctx.resilient_parsing or not needed or any(one.envvar for one in needed):
            return super().parse_args(ctx, args)
        names = " and ".join(one.make_metavar(ctx) for one in needed)
        example = next(line for line in (self.help or "").splitlines() if ctx.command_path in line)
        command = re.split(r"\s{2,}", example.strip())[0]
        raise click.UsageError(f"Missing: {names}. For example: {command}", ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one screen, or all of it."""
        if ctx.meta.get(WHOLE):
            super().format_help(ctx, formatter)
            return
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_start(self.help or ""))
        rows = []
        for one in self.get_params(ctx):
            record = one.get_help_record(ctx) if one.name in self.common else None
            if record and isinstance(one, click.Option):
                rows.append((record[0], re.split(r"[.;] ", one.help or "")[0].rstrip(".") + "."))
        self.format_commands(ctx, formatter)
        if rows:
            with formatter.section("Options"):
                formatter.write_dl([*rows, ("--help-all", _ALL)])
        else:
            formatter.write(f"\n--help-all: {_ALL[0].lower()}{_ALL[1:]}\n")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: this is no group."""


def _start(text: str) -> str:
    """Return the first sentence of a help, and the first of its examples."""
    first, *others = inspect.cleandoc(text).split("\n\n")
    for block in others:
        mark, *lines = block.split("\n")
        if mark.strip() == "\b" and lines[0].strip().startswith("harness"):
            starts = [n for n, line in enumerate(lines) if line.startswith("  harness")]
            end = next((n for n in starts if n >= MOST_EXAMPLES - 1), len(lines))
            return "\n\n".join([first, "\n".join([mark, *lines[: max(end, 1)]])])
    return first


def _fitted(paragraph: str, width: int) -> str:
    mark, *lines = paragraph.strip("\n").split("\n")
    if mark.strip() != "\b" or max(map(len, lines)) <= width:
        return paragraph
    items: list[list[str]] = []  # what stands left, with the gap behind it, and lines of a text
    for line in lines:
        lead = len(line) - len(line.lstrip())
        columns = _COLUMNS.fullmatch(line)
        left, *text = items[-1] if items else [""]
        if lead or not text:
            goes_on = bool(text) and lead == len(left) >= 8 and not columns
        else:
            goes_on = not left and len(text[-1]) > 60 and not line.startswith("Exit codes")
        if goes_on:
            items[-1].append(line.strip())
        elif columns:
            items.append([*columns.groups()])
        elif lead >= 8 or not lead:
            items.append([" " * lead, line.strip()])
        else:
            items.append([line])
    wrapped = (_wrapped(left, " ".join(text), width) for left, *text in items)
    return "\n".join(["\b", *(line for each in wrapped for line in each)])


def _wrapped(left: str, text: str, width: int) -> list[str]:
    """Return the lines of a text beside what stands left of it, or below; no command is broken."""
    if not text or len(left + text) <= width:
        return [left + text]
    is_beside = len(left) <= width - _LEAST
    hang = " " * (len(left) if is_beside else 6)
    below = textwrap.wrap(
        text,
        width,
        initial_indent=left if is_beside else hang,
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return below if is_beside or not left.strip() else [left.rstrip(), *below]


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": WIDEST}
"""Of the context of every command and group of commands."""


@dataclass(frozen=True)
class Lazy:
    """A command that is not loaded yet."""

    place: str
    """`module:name`, in this folder."""
    help: str
    """Its line in the help of the group; "" for one that the help does not list."""
    needs: str = ""
    """The room without which there is no such command."""
    group: str = ""
    """What it is for, beside it and those that follow in the help."""


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


class LazyGroup(Command, click.Group):
    """A group of commands that are not loaded yet."""

    context_class = HelpContext

    def __init__(self, name: str, *, lazy: Mapping[str, Lazy], **given: Any) -> None:
        super().__init__(name, no_args_is_help=True, context_settings=SETTINGS, **given)
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
        return [name for name, one in self._lazy.items() if one.help]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None where there is none of that name."""
        if cmd_name not in self._lazy:
            return None
        module, _, name = self._lazy[cmd_name].place.partition(":")
        return getattr(importlib.import_module(f"harness.cli.{module}"), name)  # type: ignore[no-any-return]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each command, without loading it."""
        first = "" if ctx.meta.get(WHOLE) else _start(self.help or "")
        shown = {name: one for name, one in self._lazy.items() if one.help}
        groups = max(len(one.group) for one in shown.values())
        if groups:
            shown = {name: one for name, one in shown.items() if f"harness {name} " not in first}
        lines = [f"  {one.group:{groups}} {name:9}  {one.help}\n" for name, one in shown.items()]
        formatter.write("\n" + "" if groups else "\nCommands:\n")
        formatter.write("".join(lines))
