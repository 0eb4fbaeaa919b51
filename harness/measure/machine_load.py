"""How busy this machine is with what is not being measured."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

import psutil

BUSY_BEFORE = 0.75
"""Load average per core from which a machine is said to be loaded: a sweep just before is less."""

BUSY_SHARE = 0.125
"""Part of the cores that others may use during a sweep before it is said."""

_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")


def cores() -> int:
    """Return how many there are."""
    return os.cpu_count() or 1


def load_before() -> float:
    """Return the load average of the last minute, 0 where it disturbs nothing."""
    load = psutil.getloadavg()[0]
    return load if load >= BUSY_BEFORE * cores() else 0.0


class Others:
    """The CPU time of everything but this process and those that it starts, from now on."""

    def __init__(self, own_s: Callable[[], float] | None = None) -> None:
        """Begin; `own_s` returns the CPU time, in seconds, that is not of others."""
        self._own_s = own_s or _own_s
        self._began = time.monotonic(), _busy_s() - self._own_s()

    def cores(self) -> float:
        """Return how many cores others kept busy on average."""
        began, before_s = self._began
        spent_s = time.monotonic() - began
        return max(_busy_s() - self._own_s() - before_s, 0.0) / spent_s if spent_s else 0.0


def process_s() -> float:
    """Return the CPU time in seconds of this process and of those that it has waited for.

    Cheap enough for a process that measures; to look for all descendants reads all of /proc.
    """
    return sum(os.times()[:4])


def disturbs(others: float) -> bool:
    """Return whether others used so many cores during a sweep that times suffer."""
    return others >= BUSY_SHARE * cores()


def _busy_s() -> float:
    times = psutil.cpu_times()
    return sum(getattr(times, name, 0.0) for name in _BUSY)


def _own_s() -> float:
    """Return the CPU time of this process and its descendants, those that have ended included."""
    own, spent_s = psutil.Process(), 0.0
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # one that has just ended is in its parent's
            times = process.cpu_times()
            spent_s += times.user + times.system + times.children_user + times.children_system
    return spent_s
