"""Files and recipes that the pages name are there."""

from __future__ import annotations

import re

import pytest

from tests.added import recipes
from tests.docs import pages

_PATH = re.compile(r"(?<![\w/.~-])(?:harness|tests|docs)/[\w/.*-]*[\w/*]")
_MODULE = re.compile(r"python -m (tests\.[\w.]+)")


def named(text):
    """Return the paths of this repository that a text names between backquotes."""
    for quoted in re.findall(r"`([^`\n]+)`", text):
        if quoted.startswith("adopt "):  # the tests of another repository
            continue
        yield from _PATH.findall(quoted)
        yield from (name.replace(".", "/") for name in _MODULE.findall(quoted))


def is_there(path):
    folder = pages.ROOT
    if "*" in path:
        return any(folder.glob(path))
    return (folder / path).exists() or (folder / f"{path}.py").exists()


@pytest.mark.parametrize("page", pages.pages())
def test_every_path_that_a_page_names_is_there(page):
    text = (pages.ROOT / page).read_text(encoding="utf-8")
    for block in pages.blocks(page):
        text = text.replace(block.text, "")
    made = {new.title for new, _ in recipes()}
    assert [path for path in named(text) if path not in made and not is_there(path)] == []


def test_a_path_of_nothing_would_be_noticed():
    text = "See `harness/none.py` and `python -m tests.none --write docs/glossary.md`."
    assert [path for path in named(text) if not is_there(path)] == ["harness/none.py", "tests/none"]


def test_there_are_seven_recipes_and_each_names_the_test_that_follows_it():
    marks = [new.mark("executed by") for new, _ in recipes()]
    assert len(marks) == 7
    assert set(marks) == {"tests/test_added.py", "tests/profiles/causes/test_registry.py"}
