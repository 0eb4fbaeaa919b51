"""What `--help` of each command says, at the widths that terminals have."""

import re

import click
import pytest

from harness.cli import app
from harness.cli.lazy import Formatter


def commands(command=app, path="harness"):
    yield path, command
    for name in getattr(command, "commands", {}):
        yield from commands(command.get_command(None, name), f"{path} {name}")


COMMANDS = dict(commands())


def help_of(path, width):
    command = COMMANDS[path]
    settings = {**command.context_settings, "terminal_width": width}
    return command.get_help(command.context_class(command, info_name=path, **settings))


@pytest.mark.parametrize("path", COMMANDS)
def test_help_explains_everything_and_fits_its_terminal(path):
    for parameter in COMMANDS[path].params:
        assert parameter.help, parameter.name
        for option in re.findall(r"same as (--\w+)", parameter.help):
            assert option in {name for each in COMMANDS[path].params for name in each.opts}
    for width in (72, 80, 102):
        for line in help_of(path, width).splitlines():
            # A command is one line, to be copied.
            assert len(line) <= width or line.lstrip().startswith("harness "), line
    wide, narrow = ("".join(help_of(path, width).split()) for width in (102, 72))
    assert wide == narrow
    assert wide.startswith(f"Usage: {path}".replace(" ", ""))
    assert not re.search(r"<[a-z]", help_of(path, 102)), "values have names, and no types"
    if path.count(" ") == 1 and not isinstance(COMMANDS[path], click.Group):
        assert f"    {path}" in help_of(path, 102), "an example"


def test_the_first_help_teaches_commands_and_exit_codes():
    said = help_of("harness", 102)
    assert "    harness run Gelu --case size=1024 " in said
    assert "Exit codes: 0 fine; 1 something is slower; 2 wrong usage" in said


def test_columns_of_examples_wrap_in_their_column_and_prose_as_prose():
    text = "\n".join((
        "\b",
        "  run a    what is measured by it,",
        "           and what is not",
        "  a command that is longer than the line",
        "A sentence over two lines of a source that is wide, and",
        "its end.",
    ))  # fmt: skip
    formatter = Formatter(width=40)
    formatter.write_text(text)
    assert formatter.getvalue().splitlines() == [
        "  run a    what is measured by it, and",
        "           what is not",
        "  a command that is longer than the line",
        "A sentence over two lines of a source",
        "that is wide, and",
        "its end.",
    ]
