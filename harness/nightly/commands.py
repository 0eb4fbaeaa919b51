"""Commands that a night starts: logged, and ended with it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.engine.child import Child


class Runner:
    """Starts commands in the project's folder, with their output in files."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd

    def run(
        self, command: Sequence[str], log: Path, variables: Mapping[str, str] | None = None
    ) -> int:
        """Run a command, append what it says to `log`, and return its exit code.

        One that something killed is run once more, because it goes on where it was: what ran out
        of memory may not do so again, and who kills a night and all that it has started may reach
        the command first, which must not be kept as the end of a step.

        Returns:
            128 + N where signal N killed it.
        """
        code = self._once(command, log, variables)
        return self._once(command, log, variables) if code > 128 + signal.SIGINT else code

    def harness(self, command: str, *arguments: str, log: Path) -> int:
        """Run a command of this harness, and return its exit code."""
        return self.run([sys.executable, "-m", "harness", command, *arguments], log)

    def _once(self, command: Sequence[str], log: Path, variables: Mapping[str, str] | None) -> int:
        log.parent.mkdir(parents=True, exist_ok=True)
        there = {**os.environ, **(variables or {})}
        with (
            log.open("ab") as out,
            Child(command, there, cwd=self.cwd, log=out, kept=True) as child,
        ):
            code = child.wait()
        return 128 - code if code < 0 else code


def last_line(log: Path) -> str:
    """Return the last line that says something, for a note."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
