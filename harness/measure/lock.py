"""One measurement at a time on a device: locks that all who measure on a machine share.

A lock is held by a process and by the children that it starts meanwhile, so that the system lets go
of it when the last of them is gone, however they end. What they start in turn knows by a variable
who holds it, and waits for nobody.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType

import psutil

from harness.errors import UsageError
from harness.jaxhooks.temporary import remove_left_over
from harness.measure import containment
from harness.records.units import counted, seconds_text

with contextlib.suppress(ImportError):  # Windows has none, and only reads
    import fcntl

LOOK_S, SELDOM_S = 0.2, 2.0
"""How often it is seen whether a device is free: less often the longer it takes, for many who look
would disturb who measures."""

LOCKS = Path("/proc/locks")
"""Where Linux says which process holds which lock."""

WAIT_VARIABLE = "HARNESS_WAIT"
"""The variable that says 0 where a command is to end if others measure on this machine."""

_HOLDERS = "HARNESS_HOLDERS"
"""The variable that has the numbers of the processes for which this one works."""

_held: ContextVar[Mapping[Path, int | None]] = ContextVar("_held", default=MappingProxyType({}))
"""The locks of this thread, with their open files; None for one that whom it works for holds."""


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


def waits() -> bool:
    """Return whether to wait while others measure, where nobody says so."""
    return os.environ.get(WAIT_VARIABLE, "1") != "0"


@contextlib.contextmanager
def measuring(say: Callable[[str], None], wait: bool | None = None) -> Iterator[None]:
    """Hold this machine against all others who measure on it.

    `say` is called with for whom it waits, and at the end with how long it waited.

    Raises:
        UsageError: others measure, and it is not to wait; or the folder cannot be used.
        HarnessError: this system is none to measure on.
    """
    seen: set[str] = set()
    began_s = time.monotonic()

    def check(holder: str) -> None:
        if not (waits() if wait is None else wait):
            raise UsageError(
                f"{holder} measures on this machine, and two at once would disturb each other. "
                f"Try again when it is done; without --no-wait or {WAIT_VARIABLE}=0, sweeps wait."
            )
        if holder not in seen:
            seen.add(holder)
            say(f"waiting: {holder} measures on this machine; {WAIT_VARIABLE}=0 ends instead")

    tidy(say)
    with alone([processor()], check):
        if seen:
            say(f"waited {seconds_text(time.monotonic() - began_s)} for others who measured")
        tidy(say)
        yield


def tidy(say: Callable[[str], None]) -> None:
    """End and remove what killed commands have left, and say so."""
    containment.need()
    if number := containment.end_left_over():
        say(f"ended {counted(number, 'process')} that killed commands had started")
    if left := remove_left_over():
        say(f"removed {counted(len(left), 'temporary folder')} of processes that were killed")


@contextlib.contextmanager
def alone(devices: Iterable[str], check: Callable[[str], None]) -> Iterator[None]:
    """Hold devices of this machine against all others who measure.

    Not against this thread, where it holds one already, nor against what it works for.

    `check` is called, with who holds it, while somebody else has any of them; what it raises ends
    the waiting.
    """
    held = dict(_held.get())
    with contextlib.ExitStack() as stack:
        for device in sorted(devices):  # in one order, so that no two wait for each other
            name = hashlib.sha256(device.encode()).hexdigest()[:16]
            path = _folder() / f"jax-harness-{name}.lock"
            if path not in held:
                held[path] = fd = _locked(path, check)
                if fd is not None:
                    stack.callback(os.close, fd)
        token = _held.set(held)
        stack.callback(_held.reset, token)
        yield


def for_children() -> tuple[list[int], dict[str, str]]:
    """Return the open files that a child inherits, to hold what this process does, and variables.

    See :class:`harness.measure.child.Child`.
    """
    files = [fd for fd in _held.get().values() if fd is not None]
    holders = os.environ.get(_HOLDERS, "").split()
    return files, {_HOLDERS: " ".join([*holders, str(os.getpid())])} if files else {}


def _locked(path: Path, check: Callable[[str], None]) -> int | None:
    """Return the file with the lock, once this process holds it; None if whom it works for does."""
    look_s = LOOK_S
    while True:
        fd = _open(path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return os.dup(fd)  # this one is closed below
        except FileNotFoundError:
            pass  # somebody has tidied up since: the next to come would make another file
        except BlockingIOError:
            pid, works_for = _holder(fd), os.environ.get(_HOLDERS, "").split()
            if str(pid) in works_for or (works_for and not pid):
                return None
            if containment.end_left_over():
                continue
            check(_described(pid))
            time.sleep(look_s)
            look_s = min(SELDOM_S, look_s * 1.2)
        finally:
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
        # Whoever made it, it is neither a link nor waits for somebody who writes.
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise UsageError(
            f"The lock {path} cannot be opened: {error.strerror}. Whoever measures on this machine "
            "holds it; expected a folder that all may write to. HARNESS_LOCKS names another."
        ) from None


def _holder(fd: int) -> int:
    """Return the number of the process that took a lock, 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        inode = str(os.fstat(fd).st_ino)
        for line in LOCKS.read_text().splitlines():
            words = line.split()  # `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE START END`
            if words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
                return int(words[4])
    return 0


def _described(pid: int) -> str:
    """Return what a user is told of the process that took a lock."""
    if not pid:
        return "another process"
    try:
        process = psutil.Process(pid)
        since = time.strftime("%H:%M:%S", time.localtime(process.create_time()))
        command = " ".join(shlex.join(process.cmdline()).split())
    except psutil.Error:
        return f"what process {pid} started, which is gone,"
    short = command if len(command) <= 60 else f"{command[:59]}…"
    return f"process {pid} ({short}, since {since})"
