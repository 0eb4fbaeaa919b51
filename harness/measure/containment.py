"""What Linux does where a process outlives its parent or eats the machine, and what it has started.

What a process of ours has started, in whatever session and whoever its parent is now, is told by a
variable that each process hands on to what it starts: a mark for each that started it. Only Linux
shows the variables of processes; one that clears them is not found.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from harness.errors import HarnessError

with contextlib.suppress(ImportError):  # Windows has none, and only reads
    import resource

POSSIBLE = hasattr(os, "setsid")
"""Whether a process can be bound to another one here; Windows cannot."""

END_WITH_PARENT, MEMORY = "ends with its parent", "memory"
"""What a record may say of its process."""

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_THREADS_BYTES = 32 << 20
"""Stacks of threads that libraries start later, for each processor: they count whole."""

_KIB = ("VmData", "RssAnon")
"""In `/proc/self/status`: what is private and writable, and what is used of it."""

_VARIABLE = "HARNESS_STARTED_BY"
_PROCESSES = "/proc"

_KILL_S = 10.0
"""What the kernel does not end in so long is left to it."""

_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def need() -> None:
    """Refuse to measure where what is started could not be ended."""
    if not POSSIBLE:
        raise HarnessError(
            "Nothing can be measured under Windows: a process that measures could not be bound to "
            "the one that starts it. Expected Linux (WSL as well) or macOS; what was measured "
            "there can be read here."
        )


def contain(memory_bytes: int | None) -> list[str]:
    """Bind this process, whose parent is there; return what is bound.

    Args:
        memory_bytes: what it may hold; None where that cannot be told from what it reserves, as
            with a GPU.
    """
    if sys.platform != "linux":
        return []
    end_with_parent()
    bound = [END_WITH_PARENT]
    if memory_bytes is not None and _limit(memory_bytes):
        bound.append(MEMORY)
    return bound


def end_with_parent(parent: int | None = None) -> None:
    """Have Linux kill this process when the thread that started it, in `parent`, ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:  # it was gone before
        os._exit(1)


def dying_with_caller() -> Callable[[], None] | None:
    """Return what a command calls in its process before it begins, to end when this one is gone."""
    on_linux = sys.platform == "linux"
    return functools.partial(end_with_parent, os.getpid()) if on_linux else None


def _limit(memory_bytes: int) -> bool:
    """Let allocations fail beyond a size; return whether that could be done.

    The kernel counts what is private and writable, used or not: what this process has reserved
    and not used so far is left out.
    """
    try:
        status = Path("/proc/self/status").read_text()
        data, used = (
            int(re.findall(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)[0]) for name in _KIB
        )
        unused = (data - used) << 10
        bytes_ = memory_bytes + max(0, unused) + _THREADS_BYTES * (os.cpu_count() or 1)
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if hard != resource.RLIM_INFINITY:
            bytes_ = min(bytes_, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (bytes_, hard))
    except (OSError, ValueError, IndexError):  # not every kernel tells, or lets
        return False
    return True


def group_limit_bytes() -> int | None:
    """Return what the control groups of this process let it hold together; None for no limit."""
    limits = []
    with contextlib.suppress(OSError):
        for line in _OWN_GROUPS.read_text().splitlines():
            _, kind, path = line.split(":", 2)
            if kind not in ("", "memory"):
                continue
            top = _GROUPS / kind
            own = top / path.lstrip("/")
            for group in (own, *own.parents):
                for name in ("memory.max", "memory.limit_in_bytes"):  # v2, v1
                    with contextlib.suppress(OSError, ValueError):  # none there, or `max`
                        limits.append(int((group / name).read_text()))
                if group == top:
                    break
    return min(limits, default=None)


def new_mark() -> str:
    """Return what tells those apart that this process starts from now on."""
    return f"{os.getpid()}:{_namespace()}:{secrets.token_hex(8)}"


def marked(mark: str) -> dict[str, str]:
    """Return the variable of a process that is started under a mark."""
    return {_VARIABLE: " ".join([*os.environ.get(_VARIABLE, "").split(), mark])}


def end_started(mark: str, but: Collection[int] = ()) -> None:
    """Kill all that was started under a mark, and what that starts meanwhile."""
    _kill(lambda marks: mark in marks, but)


def end_left_over() -> int:
    """Kill what processes have started that are gone; return how many there were."""
    namespace, own = _namespace(), os.environ.get(_VARIABLE, "").split()

    def is_left_over(marks: list[str]) -> bool:
        owners = [mark.split(":") for mark in marks if mark not in own]
        # In another namespace the same number is another process.
        here = [words[0] for words in owners if words[1:2] == [str(namespace)]]
        return any(pid.isdigit() and not os.path.exists(f"{_PROCESSES}/{pid}") for pid in here)

    return _kill(is_left_over, ())


def _kill(wanted: Callable[[list[str]], bool], but: Collection[int]) -> int:
    killed: set[int] = set()
    deadline = time.monotonic() + _KILL_S
    while pids := [pid for pid, marks in _all().items() if wanted(marks) and pid not in but]:
        for pid in pids:
            with contextlib.suppress(OSError):  # it is gone, or another user's
                process = os.pidfd_open(pid)
                try:
                    if wanted(_marks(pid)):  # not another one of this number
                        signal.pidfd_send_signal(process, signal.SIGKILL)
                        killed.add(pid)
                finally:
                    os.close(process)
        if time.monotonic() > deadline:
            break
        time.sleep(0.002)
    return len(killed)


def _all() -> Mapping[int, list[str]]:
    """Return the marks of each process of this user's that has any."""
    try:
        numbers = [int(name) for name in os.listdir(_PROCESSES) if name.isdigit()]
    except OSError:  # no Linux
        return {}
    marks_by_pid = {number: _marks(number) for number in numbers if number != os.getpid()}
    return {number: marks for number, marks in marks_by_pid.items() if marks}


def _marks(pid: int) -> list[str]:
    try:
        with open(f"{_PROCESSES}/{pid}/environ", "rb", buffering=0) as file:
            variables = b"\0" + (file.read() or b"")
            owner = os.fstat(file.fileno()).st_uid
    except OSError:
        return []
    _, variable, rest = variables.partition(f"\0{_VARIABLE}=".encode())
    mine = variable and owner == os.geteuid()
    return rest.partition(b"\0")[0].decode("ascii", "replace").split() if mine else []


def _namespace() -> int:
    try:
        return os.stat(f"{_PROCESSES}/self/ns/pid").st_ino
    except OSError:
        return 0
