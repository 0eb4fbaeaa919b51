"""How much there is to learn of the command line: its commands and their options, counted by click.

    python -m tools.surface

Loads every command. Groups count as commands, `--help` and arguments do not; an option with several
names, such as `-o` and `--output`, counts once, and so does `--this/--not-this`.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from harness.cli import app


def commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command below a group with its name, groups before what they hold."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, name
            yield " ".join((*names, name)), below
            yield from commands(below, *names, name)


def options(command: click.Command) -> list[str]:
    """Return the first name of each option of a command, hidden ones included.

    A group's are those of the command that it stands for, too: `harness profile -- PROGRAM`.
    """
    every = command.get_params(click.Context(command))
    names = [one.opts[0] for one in every if isinstance(one, click.Option)]
    return [name for name in names if name not in ("-h", "--help")]


def main() -> None:
    """Print each command with the number of its options, and the totals."""
    every = [("harness", app), *commands(app)]
    for name, command in every:
        print(f"{len(options(command)):4}  {name:24}  {' '.join(options(command))}")
    total = sum(len(options(command)) for _, command in every)
    print(f"{total:4}  options of {len(every) - 1} commands")


if __name__ == "__main__":
    main()
