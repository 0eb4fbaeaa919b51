"""A copy of the house with something added to it, as one of `tests/recipes.md` describes."""

import itertools
import os
import shutil
import sys
from pathlib import Path

from tests import forks
from tests.docs import pages

HARNESS = Path(__file__).parents[1] / "harness"


def recipes():
    """Yield each recipe: the block of a new file, and that of a registry."""
    blocks = pages.blocks("tests/recipes.md")
    for new, registry in itertools.pairwise(blocks):
        if new.title:
            assert registry.language == "diff", f"{new.where}: no diff of a registry follows"
            yield new, registry


def recipe(file):
    """Return the text of a new file and the diff of its registry, as the recipes have them."""
    ((new, registry),) = [pair for pair in recipes() if pair[0].title == file]
    return new.text, registry.text


class House:
    """A copy of `harness` in a folder of its own, and a project beside it."""

    def __init__(self, folder):
        self.folder = folder
        self.forks = ""
        """The address of a server that forks its processes, if there is one; see `forks`."""
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(HARNESS, folder / "harness", ignore=ignored)

    def follow(self, file, change=lambda text: text):
        """Follow the recipe that makes `file`; `change` may spoil the file's text."""
        text, diff = recipe(file)
        (self.folder / file).write_text(change(text))
        first, *steps = diff.splitlines()
        registry = self.folder / first.removeprefix("+++ ")
        lines = registry.read_text().splitlines()
        added = []
        for step in steps:
            if step.startswith("+"):
                added.append(step[1:])
            else:
                assert lines.count(step[1:]) == 1, f"{registry} has not the one line {step[1:]!r}"
                place = lines.index(step[1:])
                lines[place:place] = added
                added = []
        registry.write_text("\n".join([*lines, ""]))

    def python(self, *arguments, **variables):
        """Run Python where this house is the one that is imported; return the process."""
        own = {"PYTHONPATH": str(self.folder), forks.ADDRESS: self.forks}
        return forks.run(
            [sys.executable, *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, **own, **variables},
        )

    def command(self, *arguments):
        """Run a command of the harness; return what it printed."""
        done = self.python("-m", "harness", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
