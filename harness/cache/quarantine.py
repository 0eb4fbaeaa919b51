"""Bad entries moved aside: nothing of a user's cache is ever deleted."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.cache.directory import ATIME_SUFFIX, CACHE_SUFFIX, UnusableCacheError, locked
from harness.cache.survey import QUARANTINE_PREFIX, Entry


class Moved(msgspec.Struct, frozen=True):
    """What one call moved.

    Attributes:
        gone: Entries that another process, or another doctor, had taken away before.
        changed: Entries that were written anew after they were read: these were left alone.
    """

    folder: str
    names: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def move_aside(
    directory: Path,
    entries: Iterable[Entry],
    now: float | None = None,
    prefix: str = QUARANTINE_PREFIX,
) -> Moved:
    """Move entries into a new folder inside the directory, one atomic rename each.

    JAX looks for names that end with `-cache` in the directory itself, so that it never sees the
    folder.

    An entry that was written anew since it was read stays. The folder is called after `prefix` and
    the time, `now`.
    """
    with locked(directory):
        return _move(directory, entries, time.time() if now is None else now, prefix)


def _move(directory: Path, entries: Iterable[Entry], now: float, prefix: str) -> Moved:
    moved: list[str] = []
    gone: list[str] = []
    changed: list[str] = []
    folder: Path | None = None
    try:
        for entry in entries:
            source = directory / (entry.name + CACHE_SUFFIX)
            try:
                seen = os.stat(source)
                if (seen.st_ino, seen.st_mtime_ns, seen.st_size) != (
                    entry.inode,
                    entry.written_ns,
                    entry.size_bytes,
                ):
                    changed.append(entry.name)
                    continue
                folder = folder or _new_folder(directory, now, prefix)
                os.rename(source, folder / source.name)
                moved.append(entry.name)
                used = directory / (entry.name + ATIME_SUFFIX)
                os.rename(used, folder / used.name)
            except FileNotFoundError:
                if entry.name not in moved[-1:]:  # only the time of use may be missing
                    gone.append(entry.name)
    except OSError as error:
        into = f" to {folder}" if moved else ""
        raise UnusableCacheError(
            f"{len(moved)} entries of {directory} were moved{into}, then it failed: {error}. "
            "Expected a directory that this user can write: run this as the user whose programs "
            "fill it."
        ) from None
    finally:
        if folder is not None and not moved:
            folder.rmdir()  # ours, and empty: another was faster, or the move was refused
            folder = None
    return Moved(str(folder or ""), tuple(moved), tuple(gone), tuple(changed))


def _new_folder(directory: Path, now: float, prefix: str) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    for number in itertools.count(1):
        # Making it fails if it is there: no two share a folder, so no name meets another.
        folder = directory / (prefix + stamp + (f"-{number}" if number > 1 else ""))
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("itertools.count does not end")
