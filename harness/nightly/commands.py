"""Commands that a night starts: logged, ended with it, and one night at a time."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.errors import StoreError, UsageError

WAIT_S = 20.0
"""What a killed night had started ends within seconds; only then does the next one begin."""


class Runner:
    """Starts commands in the project's folder, with their output in files."""

    def __init__(self, cwd: Path, lock: int) -> None:
        self.cwd = cwd
        self.lock = lock

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

    def _once(self, command: Sequence[str], log: Path, variables: Mapping[str, str] | None) -> int:
        log.parent.mkdir(parents=True, exist_ok=True)
        watched = [sys.executable, "-m", "harness.nightly.child", *command]
        with (
            log.open("ab") as out,
            subprocess.Popen(
                watched,
                cwd=self.cwd,
                env={**os.environ, **(variables or {})},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                pass_fds=[self.lock],  # held until the last command is gone
            ) as running,
        ):
            # Not `communicate`, which would close standard input: the command ends with it.
            code = running.wait()
            return 128 - code if code < 0 else code


def last_line(log: Path) -> str:
    """Return the last line that says something, for a note."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][:300] if said else ""


@contextmanager
def alone(folder: Path) -> Iterator[int]:
    """Hold the lock of a machine's nights; yield its file descriptor.

    Raises:
        UsageError: another night, or what it started, holds it.
        StoreError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror or error}. Nights are kept there."
        ) from error
    try:
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UsageError(
                        f"Another night is running on this machine (it holds {folder / '.lock'}). "
                        "Two at once would disturb each other: wait for it, or end it; either way "
                        "the same command goes on from there."
                    ) from None
                time.sleep(0.2)
        yield fd
    finally:
        os.close(fd)
