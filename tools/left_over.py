"""A project in which commands are disturbed, and what they leave: processes, folders, worktrees."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from harness.records.schema import Problems, Record, read_file
from harness.records.store import record_files
from tests import forks, started
from tests.asv.project import Project
from tests.nightly.nights import TINY

Popen = subprocess.Popen[bytes]
PATIENCE_S = 2.0
"""What is there so long after a command is left over."""


class Place:
    """An asv project with two commits, its own TMPDIR and locks, and shared memory as it was."""

    def __init__(
        self, folder: Path, variables: Mapping[str, str] | None = None, module: str = TINY
    ) -> None:
        """Make it in a folder; without `variables` no process in it is forked."""
        if variables is None:
            variables = {name: text for name, text in os.environ.items() if name != forks.ADDRESS}
        self.folder = folder
        self.made = Project(folder / "project", {"tiny": module})
        self.project, self.results = self.made.folder, self.made.results
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        (self.project / "cache").mkdir()
        self.token = str(folder)
        self.locks = {"TMPDIR": str(self.scratch), "HARNESS_LOCKS": str(folder)}
        self.environment = {
            **variables,
            **self.made.environment,
            **self.locks,
            started.TOKEN: self.token,
            "JAX_PLATFORMS": "cpu",
        }
        self._git("commit", "-q", "--allow-empty", "-m", "second")
        self._shared = set(Path("/dev/shm").iterdir())

    def _git(self, *words: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@y")
        command = ["git", "-C", str(self.project), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *error: object) -> None:
        self.tidy()

    def ended(
        self, words: Sequence[str], before: Sequence[str] = (), **variables: str
    ) -> tuple[int, str]:
        """Run `harness WORDS`; return what it ends with, and what it says on standard error."""
        return self.python("-m", "harness", *words, before=before, **variables)

    def python(self, *words: str, before: Sequence[str] = (), **variables: str) -> tuple[int, str]:
        """Run Python in the project, after the words `before`; return what :meth:`ended` does."""
        done = self.run(*words, before=before, variables=variables)
        return done.returncode, done.stderr

    def run(
        self,
        *words: str,
        before: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        stderr: int = subprocess.PIPE,
    ) -> subprocess.CompletedProcess[str]:
        """Run Python in the project to its end, after the words `before`."""
        return subprocess.run(
            [*before, sys.executable, *words],
            cwd=self.project,
            env={**self.environment, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=600,
        )

    def start(self, *words: str, output: Any = subprocess.DEVNULL, **how: Any) -> Popen:
        """Start Python in the project, which says what it says into `output`."""
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=self.project,
            env={**self.environment, **how.pop("variables", {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            **how,
        )

    def records(self) -> list[Record]:
        """Return all records that there are."""
        found = [read_file(file, Problems()) for file in record_files(self.results)]
        return [record for each in found for record in each]

    def left(self, but: Callable[[str], bool] = lambda one: False) -> list[str]:
        """Return what there is that no command should have left, after a while."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := [one for one in self._left() if not but(one)]) and (
            time.monotonic() < deadline
        ):
            time.sleep(0.05)
        return found

    def _left(self) -> list[str]:
        found = [f"folder {one.name}" for one in self.scratch.iterdir()]
        trees = self._git("worktree", "list", "--porcelain").count("worktree ") - 1
        found += ["worktree"] * trees
        for one in started.of(self.token):
            with contextlib.suppress(psutil.Error):
                if one.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"process {' '.join(one.cmdline())[:100]}")
        new = set(Path("/dev/shm").iterdir()) - self._shared
        mapped = _mapped() if new else set()
        for one in new:
            with contextlib.suppress(FileNotFoundError):
                if one.stat().st_ino not in mapped:
                    found.append(f"shared memory {one}")
        found += [f"file {one}" for one in self.project.rglob(".*.part")]
        return found

    def tidy(self) -> None:
        """Remove it all."""
        for one in started.of(self.token):
            with contextlib.suppress(psutil.Error):
                one.kill()
        for one in self.scratch.iterdir():
            shutil.rmtree(one, ignore_errors=True) if one.is_dir() else one.unlink()
        self._git("worktree", "prune")


def ran(about: str | None, campaign: Callable[[int, int], Counter[str]], rounds: int) -> int:
    """Run a campaign of so many rounds from the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    counts = campaign(given.rounds, given.seed)
    print(", ".join(f"{count} {name}" for name, count in counts.most_common()))
    return int(bool(counts["bad"]))


def _mapped() -> set[int]:
    """Return the inodes of shared memory that some process has: others run on this machine.

    Who made a semaphore has it under another name: it is made as a temporary file and linked.
    """
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            for line in maps.read_text().splitlines():
                if "/dev/shm/" in line:
                    found.add(int(line.split()[4]))
    return found
