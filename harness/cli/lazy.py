"""Groups of commands that load a command's module when it is invoked, or its own help is asked."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,  # rich's help would double the time that --help takes
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""Of every command and group of commands."""


@dataclass(frozen=True)
class Lazy:
    """A command that is not loaded yet."""

    place: str
    """`module:name` of a command, or of a :class:`typer.Typer` app."""
    help: str
    """Its line in the help of the group."""
    needs: str = ""
    """The room without which there is no such command."""


def group(commands: Mapping[str, Lazy], base: type[TyperGroup] = TyperGroup) -> type[TyperGroup]:
    """Return a class of groups that have these commands; for `cls=` of :class:`typer.Typer`."""
    here = {
        name: one
        for name, one in commands.items()
        if not one.needs or importlib.util.find_spec(one.needs)
    }

    class LazyGroup(base):  # type: ignore[misc, valid-type]
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            for name, one in here.items():
                self.commands.setdefault(name, TyperCommand(name, help=one.help))

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return load(here[cmd_name]) if cmd_name in here else super().get_command(ctx, cmd_name)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            limit = formatter.width - 6 - max(map(len, self.commands))
            rows = [(name, one.get_short_help_str(limit)) for name, one in self.commands.items()]
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    return LazyGroup


def load(command: Lazy) -> Any:
    """Import a command's module and return the command."""
    module, _, name = command.place.partition(":")
    value = getattr(importlib.import_module(module), name)
    return typer.main.get_command(value) if isinstance(value, typer.Typer) else cast(Any, value)
