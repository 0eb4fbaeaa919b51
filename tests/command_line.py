"""The command line, as a user types it, without importing the same libraries at every call."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess

from harness.cli import COMMANDS

_forked = multiprocessing.get_context("forkserver")
_forked.set_forkserver_preload(
    ["jax.numpy", "harness.engine.sweep"]
    + [command.place.partition(":")[0] for command in COMMANDS.values()]
)


class Command:
    """`harness WORDS` in a process of its own, forked from one that has imported it all.

    `environment` is the whole environment of the process; without it, it is that of the caller.
    """

    def __init__(
        self, *words: object, cwd: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.words = list(map(str, words))
        self._said = tempfile.TemporaryDirectory(prefix="harness-said-")
        self._files = [Path(self._said.name, name) for name in ("stdout", "stderr")]
        for file in self._files:
            file.touch()
        place, variables = os.fspath(cwd or Path.cwd()), dict(environment or os.environ)
        files = [os.devnull, *map(str, self._files)]
        self._process = _forked.Process(target=_main, args=(self.words, place, variables, files))
        self._process.start()

    @property
    def pid(self) -> int:
        """The process's number."""
        assert self._process.pid is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the process the way an impatient user does."""
        self._process.kill()
        self.wait()

    def wait(self, timeout_s: float | None = None) -> CompletedProcess[str]:
        """Return the exit code of the process, and what it said."""
        self._process.join(timeout_s)
        code = self._process.exitcode
        assert code is not None, f"still running after {timeout_s} s: {self.words}"
        out, err = (file.read_text(encoding="utf-8") for file in self._files)
        self._said.cleanup()
        return CompletedProcess(self.words, code, out, err)


def harness(
    *words: object, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Run `harness WORDS`, wait for its end, and return its exit code and what it said."""
    return Command(*words, cwd=cwd, environment=environment).wait()


def _main(words: list[str], cwd: str, environment: Mapping[str, str], files: list[str]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDWR), number)
    sys.path[:0] = [cwd, *environment.get("PYTHONPATH", "").split(os.pathsep)]
    sys.argv = ["harness", *words]
    from harness.cli import main

    main()
