"""Every command of `harness` that a page names is one that there is, with options that it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from harness.cli import app
from tests.docs import pages

IN_A_BLOCK = re.compile(r"(?:^|&& |\$ )(?:[A-Z_]+=\S+ )*(harness [^\n]*)", re.MULTILINE)
IN_A_SENTENCE = re.compile(r"`((?:[A-Z_]+=\S+\s+)*harness\s+[a-z][^`]*)`")
FENCED = re.compile(r"^(```+).*?^\1$", re.DOTALL | re.MULTILINE)


def commands(page: str, text: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield each command of a page with where it stands: in its blocks, and between backticks."""
    for block in pages.blocks(page, text):
        if block.runs == "sh":
            for line in IN_A_BLOCK.findall(block.text.replace("\\\n", " ")):
                yield block.where, line
    if text is None:
        text = (pages.ROOT / page).read_text(encoding="utf-8")
    for said in IN_A_SENTENCE.findall(FENCED.sub("", text)):
        yield page, re.sub(r"^.*?(?=harness\s)", "", " ".join(said.split()))


def options_of(command):
    return {name for parameter in command.params for name in parameter.opts} | {"-h", "--help"}


def unknown(line: str) -> str:
    """Return the word or option of a line of `harness` that no command knows, or nothing."""
    words = shlex.split(line, comments=True)[1:]
    command = app
    # What follows -- is another program's.
    dashes = "--" in words
    words = words[: words.index("--")] if dashes else words
    for word in words:
        if word in ("&&", "|", ">", "<") or word.startswith((">", "2>")):
            return ""
        nested = getattr(command, "commands", {})
        if word.startswith("-"):
            if "run" in nested and dashes:
                command = command.get_command(None, "run")  # harness profile [OPTIONS] -- PROGRAM
            option = word.partition("=")[0]
            if re.fullmatch(r"--?[a-zA-Z][\w-]*", option) and option not in options_of(command):
                return option
        elif nested:
            if word not in nested and not ("run" in nested and dashes):
                return word
            command = command.get_command(None, word) if word in nested else command
    return ""


@pytest.mark.parametrize("page", pages.pages())
def test_every_command_and_option_of_a_page_is_one_that_there_is(page):
    wrong = [
        f"{where}: `{line}`: harness knows no {unknown(line)}"
        for where, line in commands(page)
        if unknown(line)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("harness measure Gelu", "measure"),
        ("harness run Gelu --efort quick", "--efort"),
        ("harness cache doktor DIR", "doktor"),
        ("harness profile --lively -- python a.py --steps 3", "--lively"),
        ("harness run Gelu --effort quick   # --efort", ""),
        ("harness profile -o now -- python train.py --steps 3", ""),
    ],
)
def test_an_unknown_command_or_option_is_noticed(line, said):
    assert unknown(line) == said


def test_commands_are_found_in_blocks_and_in_sentences():
    text = "As `harness\nrun --on` and `HARNESS_FRESH=1 harness show`:\n\n    harness list  # a\n"
    found = [line for _, line in commands("page.md", text)]
    assert found == ["harness list  # a", "harness run --on", "harness show"]
