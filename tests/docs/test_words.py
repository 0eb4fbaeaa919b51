"""Words of a dialect that only this program spoke stay out of help, output and pages."""

import re

import pytest

from tests.cli.test_golden import GOLDEN
from tests.cli.test_help import COMMANDS, help_of
from tests.docs import pages

DIALECT = re.compile(
    r"\b(told|dear|dearest|lacks|ails|ailments?|mends?|mending|arms?|visits?|anew|kept apart"
    r"|looks advise|what is shown is what was said|nobody reads on)\b"
)
CODE = re.compile(r"^(```+).*?^\1$|^    [^\n]*|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
"""What is quoted: names of options, columns and files may be as they are."""


def dialect(text):
    return [found[0] for found in DIALECT.finditer(CODE.sub("", text))]


@pytest.mark.parametrize("page", pages.pages())
def test_a_page_is_in_plain_words(page):
    assert dialect((pages.ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", COMMANDS)
def test_help_is_in_plain_words(path):
    assert DIALECT.findall(help_of(path, 200)) == []


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_output_is_in_plain_words(path):
    assert DIALECT.findall(path.read_text(encoding="utf-8")) == []


def test_a_word_of_the_dialect_is_found():
    assert dialect("Both arms are `told`.\n\n    arm\n") == ["arms"]
