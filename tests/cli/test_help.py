"""What `--help` of each command says, at the widths that terminals have."""

import re

import click
import pytest

from harness.cli import app
from harness.cli.lazy import WHOLE, Formatter


def commands(command=app, path="harness"):
    yield path, command
    for name in getattr(command, "commands", {}):
        yield from commands(command.get_command(None, name), f"{path} {name}")


COMMANDS = dict(commands())


SCREEN = 24
"""Lines of 80 columns."""


def help_of(path, width, whole=True):
    command = COMMANDS[path]
    settings = {**command.context_settings, "terminal_width": width}
    context = command.context_class(command, info_name=path, **settings)
    context.meta[WHOLE] = whole
    return command.get_help(context)


@pytest.mark.parametrize("path", COMMANDS)
def test_help_of_every_command_is_one_screen(path):
    lines = help_of(path, 80, whole=False).splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= 80
    assert any("--help-all" in line for line in lines)
    whole = help_of(path, 80).splitlines()
    assert len(whole) > len(lines)
    options = [line.split("  ")[1] for line in whole if line.startswith("  -")]
    assert len(options) == len({*options})
    assert {"--help-all", "-h, --help"} <= {*options}


def test_the_first_help_begins_with_three_commands_and_names_all():
    lines = help_of("harness", 80, whole=False).splitlines()
    first = [line.split()[1] for line in lines if line.startswith("    harness ")]
    assert first == ["profile", "run", "compare"]
    listed = {word for line in lines[8:] for word in line.split()[:3]}
    assert {path.split()[1] for path in COMMANDS if path.count(" ") == 1} <= listed | set(first)


@pytest.mark.parametrize(
    ("words", "missing", "example"),
    [
        ("compare", "A and B", "harness compare HEAD~1 HEAD"),
        ("compile", "WORKLOAD", "harness compile Mlp"),
        ("profile diff", "A and B", "harness profile diff before after"),
    ],
)
def test_a_command_without_arguments_names_all_that_are_missing(command, words, missing, example):
    code, _, err = command(*words.split())
    assert code == 2
    assert f"Missing: {missing}. For example: {example}" in err


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
    lines = [line.split() for line in help_of("harness", 102).splitlines()]
    for code, meaning in ((0, "fine"), (1, "something"), (2, "wrong"), (70, "an")):
        assert [str(code), meaning] in [words[:2] for words in lines]


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
