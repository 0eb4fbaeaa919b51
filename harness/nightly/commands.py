"""Commands that a night starts: logged, ended with it, and one night at a time.

`python -m harness.nightly.commands COMMAND...` runs a command for as long as its caller lives: a
night that is killed cannot end what it started, and what goes on measuring would disturb the next
one. So the night holds the other end of standard input, and where that closes the command is ended.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.engine.child import Child
from harness.errors import StoreError, UsageError

WAIT_S = 20.0
"""What a killed night had started ends within seconds; only then does the next one begin."""

GRACE_S = 5.0
"""What was interrupted may take so long to end by itself."""


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

    def harness(self, command: str, *arguments: str, log: Path) -> int:
        """Run a command of this harness, and return its exit code."""
        return self.run([sys.executable, "-m", "harness", command, *arguments], log)

    def _once(self, command: Sequence[str], log: Path, variables: Mapping[str, str] | None) -> int:
        log.parent.mkdir(parents=True, exist_ok=True)
        with (
            log.open("ab") as out,
            subprocess.Popen(
                [sys.executable, "-m", "harness.nightly.commands", *command],
                cwd=self.cwd,
                env={**os.environ, **(variables or {})},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                pass_fds=[self.lock],  # held until the last command is gone
            ) as running,
        ):
            # Not `communicate`, which would close standard input: the command ends with it.
            return _told(running.wait())


def _told(code: int) -> int:
    return 128 - code if code < 0 else code


def last_line(log: Path) -> str:
    """Return the last line that says something, for a note."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


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
                # Not a lock of a library's: what the night started inherits this one.
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


def main(command: list[str]) -> int:
    """Run the command in a session of its own; return its exit code, 128 + N of signal N."""
    with Child(command, log=sys.stdout.buffer, patience_s=GRACE_S) as child:

        def listen() -> None:
            while os.read(0, 4096):
                pass
            os.killpg(child.pid, signal.SIGKILL)

        threading.Thread(target=listen, daemon=True).start()
        try:
            return _told(child.wait())
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
