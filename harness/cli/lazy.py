"""Groups of commands that load a command's module when it is invoked, or its own help is asked."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from harness.cli.formatter import WIDEST, HelpContext

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": WIDEST}
"""Of the context of every command and group of commands."""


@dataclass(frozen=True)
class Lazy:
    """A command that is not loaded yet."""

    place: str
    """`module:name`."""
    help: str
    """Its line in the help of the group."""
    needs: str = ""
    """The room without which there is no such command."""


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

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which they are told."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None where there is none of that name."""
        if cmd_name not in self._lazy:
            return None
        module, _, name = self._lazy[cmd_name].place.partition(":")
        return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each command, without loading it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.help) for name, one in self._lazy.items()])
