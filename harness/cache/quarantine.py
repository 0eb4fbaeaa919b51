"""Bad entries of a cache moved aside, each by one atomic rename into a folder of the directory.

A program that looks for an entry at that moment finds it whole, or not at all, and compiles.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.cache.directory import ATIME_SUFFIX, CACHE_SUFFIX, UnusableCacheError, locked
from harness.cache.survey import QUARANTINE_PREFIX, Entry
from harness.records.units import counted


class Moved(msgspec.Struct):
    """What one call moved.

    Attributes:
        folder: Where the moved entries are; empty if none was moved.
        names: Entries that were moved.
        gone: Entries that another process, or another doctor, had taken away before.
        changed: Entries that were rewritten after they were read: these were left alone.
    """

    folder: str = ""
    names: list[str] = []
    gone: list[str] = []
    changed: list[str] = []


def move_aside(directory: Path, entries: Iterable[Entry]) -> Moved:
    """Move entries into a new folder inside the directory, one atomic rename each.

    JAX looks for names that end with `-cache` in the directory itself, so that it never sees the
    folder, which is named after the time. An entry that was rewritten since it was read stays.

    Raises:
        UnusableCacheError: the directory cannot be written; what was moved until then stays moved.
    """
    moved = Moved()
    folder: Path | None = None
    with locked(directory):
        try:
            for entry in entries:
                source = directory / (entry.name + CACHE_SUFFIX)
                try:
                    seen = os.stat(source)
                    now = seen.st_ino, seen.st_mtime_ns, seen.st_size
                    if now != (entry.inode, entry.written_ns, entry.size_bytes):
                        moved.changed.append(entry.name)
                        continue
                    folder = folder or _new_folder(directory)
                    os.rename(source, folder / source.name)
                    moved.names.append(entry.name)
                    used = directory / (entry.name + ATIME_SUFFIX)
                    os.rename(used, folder / used.name)
                except FileNotFoundError:
                    if entry.name not in moved.names[-1:]:  # only the time of use may be missing
                        moved.gone.append(entry.name)
        except OSError as error:
            into = f" to {folder}" if moved.names else ""
            raise UnusableCacheError(
                f"{counted(len(moved.names), 'entry')} of {directory} moved{into}, then it failed: "
                f"{error}. Expected a directory that this user can write: run this as the user "
                "whose programs fill it."
            ) from None
        finally:
            if folder is not None and not moved.names:
                folder.rmdir()  # ours, and empty: another was faster, or the move was refused
    moved.folder = str(folder) if moved.names else ""
    return moved


def _new_folder(directory: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for number in itertools.count(1):
        folder = directory / (QUARANTINE_PREFIX + stamp + (f"-{number}" if number > 1 else ""))
        with contextlib.suppress(FileExistsError):  # no two share one, so no name meets another
            folder.mkdir()
            break
    return folder
