"""One measurement at a time on each device of a machine, whoever asks for it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from harness.records.schema import digest

LOOK_S = 0.2


@contextlib.contextmanager
def alone(devices: Iterable[str], check: Callable[[], None]) -> Iterator[None]:
    """Hold devices of this machine against every other worker, whoever its client is.

    `check` is called while another one holds any of them; what it raises ends the waiting.
    """
    with contextlib.ExitStack() as held:
        for device in sorted(devices):  # in one order, so that no two wait for each other
            fd = _open(_folder() / f"jax-harness-{digest(device)}.lock")
            held.callback(os.close, fd)
            _lock(fd, check)
        yield


def _lock(fd: int, check: Callable[[], None]) -> None:
    waiting = threading.Event()
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            check()
            waiting.wait(LOOK_S)


def _folder() -> Path:
    """Return a folder that all workers of a machine share, though each job may have its TMPDIR.

    HARNESS_LOCKS names another one, to whoever wants to measure beside others all the same.
    """
    given = os.environ.get("HARNESS_LOCKS")
    if given:
        return Path(given)
    shared = Path("/tmp")
    return shared if shared.is_dir() else Path(tempfile.gettempdir())


def _open(path: Path) -> int:
    """Open a file that any user may have made; Linux lets nobody else open it for writing."""
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_RDONLY)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:  # made just now
        return os.open(path, os.O_RDONLY)
    os.fchmod(fd, 0o644)  # other users read it, whatever this one's umask is
    return fd
