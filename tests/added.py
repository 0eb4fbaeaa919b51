"""A copy of the house with something added to it: one new file, and one line in a registry."""

import os
import shutil
import sys
from pathlib import Path

from tests import forks

HARNESS = Path(__file__).parents[1] / "harness"


class House:
    """A copy of `harness` in a folder of its own, and a project beside it."""

    def __init__(self, folder):
        self.folder = folder
        self.forks = ""
        """The address of a server that forks its processes, if there is one; see `forks`."""
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(HARNESS, folder / "harness", ignore=ignored)

    def add(self, file, text, registry, before, line, imported):
        """Write a new file, and enter it into a registry above the line that begins so."""
        (self.folder / file).write_text(text)
        path = self.folder / registry
        head, found, tail = path.read_text().partition(f"        {before}")
        assert found, f"{registry} has no line that begins with {before}"
        top, future, rest = head.partition("from __future__ import annotations\n")
        assert future, f"{registry} has no place for an import"
        path.write_text(f"{top}{future}{imported}\n{rest}        {line},\n{found}{tail}")

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
