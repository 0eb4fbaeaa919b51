"""What Linux itself does where a measuring process outlives its parent, or eats the machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import sys
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
    found = []
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
                        found.append(int((group / name).read_text()))
                if group == top:
                    break
    return min(found, default=None)
