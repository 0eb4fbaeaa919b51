"""The lock that JAX takes for each access to a directory with a size cap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from harness.cache.directory import LOCK_FILE, UnusableCacheError

PATIENCE_S = 60.0
"""JAX holds it for a read, a write or an eviction, and itself waits 10 s."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep JAX from reading, writing and evicting meanwhile, where it takes a lock to do so.

    Without a size cap it takes none: then only what is one atomic step is safe.

    Raises:
        UnusableCacheError: If another process does not let go of the lock.
    """
    place = directory / LOCK_FILE
    if not place.exists():
        yield
        return
    lock = filelock.FileLock(place)
    try:
        lock.acquire(timeout=PATIENCE_S)
    except filelock.Timeout:
        raise UnusableCacheError(
            f"{place} was held for {PATIENCE_S:.0f} s by another process. Expected JAX to let go "
            "of it after each access: look who has it open (`fuser`), and try again."
        ) from None
    except OSError as error:
        raise UnusableCacheError(
            f"{place} cannot be locked: {error.strerror or error}. Run this as the user whose "
            "programs fill the directory."
        ) from None
    try:
        yield
    finally:
        lock.release()
