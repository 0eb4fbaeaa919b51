"""One measurement at a time on a device: locks that all who measure on a machine share.

The system lets go of a lock when its process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import platform
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil

from harness.errors import UsageError
from harness.records.schema import digest

LOOK_S = 0.2
"""How often it is seen whether a device is free."""

LOCKS = Path("/proc/locks")
"""Where Linux says which process holds which lock."""


@functools.cache
def host() -> str:
    """Return what this machine is, whatever it is called: what its system made up at its start."""
    try:
        # Linux; all containers of a machine have it in common.
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return platform.node() or "localhost"


def processor() -> str:
    """Return the name of the lock of this machine's processor: whatever compiles needs it."""
    return f"{host()}/cpu"


@contextlib.contextmanager
def alone(devices: Iterable[str], check: Callable[[str], None]) -> Iterator[None]:
    """Hold devices of this machine against all others who measure.

    `check` is called, with who holds it, while somebody else has any of them; what it raises ends
    the waiting.

    Raises:
        UsageError: the folder of the locks cannot be used.
    """
    with contextlib.ExitStack() as held:
        for device in sorted(devices):  # in one order, so that no two wait for each other
            fd = _locked(_folder() / f"jax-harness-{digest(device)}.lock", check)
            held.callback(os.close, fd)
        yield


def _locked(path: Path, check: Callable[[str], None]) -> int:
    """Return the file with the lock, once this process holds it."""
    while True:
        fd = _open(path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        except FileNotFoundError:
            pass  # somebody has tidied up since: the next to come would make another file
        except BlockingIOError:
            try:
                check(_holder(fd))
            except BaseException:
                os.close(fd)
                raise
            time.sleep(LOOK_S)
        os.close(fd)


def _folder() -> Path:
    """Return a folder that all share, though each job may have its TMPDIR.

    HARNESS_LOCKS names another one, to whoever wants to measure beside others all the same.
    """
    shared = "/tmp" if Path("/tmp").is_dir() else tempfile.gettempdir()
    return Path(os.environ.get("HARNESS_LOCKS") or shared)


def _open(path: Path) -> int:
    """Open a file that any user may have made; Linux lets nobody else open it for writing."""
    try:
        with contextlib.suppress(FileExistsError):
            fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(fd, 0o644)  # other users read it, whatever this one's umask is
            return fd
        return os.open(path, os.O_RDONLY)
    except OSError as error:
        raise UsageError(
            f"The lock {path} cannot be opened: {error.strerror}. Whoever measures on this machine "
            "holds it; expected a folder that all may write to. HARNESS_LOCKS names another."
        ) from None


def _holder(fd: int) -> str:
    """Return which process holds a lock, as far as the system tells."""
    with contextlib.suppress(OSError, psutil.Error, ValueError):
        inode = str(os.fstat(fd).st_ino)
        for line in LOCKS.read_text().splitlines():
            words = line.split()  # `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE START END`
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
                process = psutil.Process(int(words[4]))
                since = time.strftime("%H:%M:%S", time.localtime(process.create_time()))
                command = " ".join(shlex.join(process.cmdline()).split())
                short = command if len(command) <= 60 else f"{command[:59]}…"
                return f"process {process.pid} ({short}, since {since})"
    return "another process"
