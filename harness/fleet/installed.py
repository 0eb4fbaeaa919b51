"""What is installed on a worker now: it lives long, and packages may be upgraded under it."""

from __future__ import annotations

import contextlib
import functools
import os
import sys

from harness.records import environment


def versions() -> dict[str, str]:
    """Return what :func:`harness.records.environment.versions` does, found out when it has changed.

    So is, then, what else of this machine records say and `identity` is
    made of.
    """
    return _versions(_stamp())


@functools.lru_cache(maxsize=1)
def _versions(stamp: tuple[int, ...]) -> dict[str, str]:
    environment.surroundings.cache_clear()
    return environment.versions()


def _stamp() -> tuple[int, ...]:
    """Return what changes when a folder of packages does; looking into them takes longer."""
    found = []
    for folder in sys.path:
        with contextlib.suppress(OSError):
            found.append(os.stat(folder).st_mtime_ns)
    return tuple(found)
