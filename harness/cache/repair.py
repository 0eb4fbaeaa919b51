"""What a doctor repairs: bad entries are moved aside, and times of use are given.

Only what fails every reader, or every write, is touched, by one atomic step each. A program that
looks for an entry at that moment finds it whole, or not at all, and compiles.
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
from harness.cache.finding import CacheFinding
from harness.cache.survey import QUARANTINE_PREFIX, Entry

GIVES_TIMES = "orphaned"
"""The check whose entries are healthy: they get the time of use 0, as later releases give them."""


class Repaired(msgspec.Struct):
    """What one call did.

    Attributes:
        folder: Where the moved entries are; empty if none was moved.
        moved: Entries that were moved.
        timed: Entries that were given a time of use.
        gone: Entries that another process, or another doctor, had taken away before.
        changed: Entries that were rewritten after they were read: these were left alone.
    """

    folder: str = ""
    moved: list[str] = []
    timed: list[str] = []
    gone: list[str] = []
    changed: list[str] = []


def repair(directory: Path, entries: Iterable[Entry], findings: Iterable[CacheFinding]) -> Repaired:
    """Repair what has the fix `repair`: see the module.

    Bad entries go into a new folder inside the directory, named after the time. JAX looks for names
    that end with `-cache` in the directory itself, so that it never sees the folder. An entry that
    was rewritten since it was read stays.

    Raises:
        UnusableCacheError: the directory cannot be written; what was done until then stays done.
    """
    repaired, by_name = Repaired(), {entry.name: entry for entry in entries}
    due = [finding for finding in findings if finding.fix.kind == "repair"]
    if not due:
        return repaired
    with locked(directory):
        try:
            bad = [f for f in due if f.check != GIVES_TIMES]
            names = dict.fromkeys(name for finding in bad for name in finding.entries)
            _move(directory, [by_name[name] for name in names], repaired)
            for finding in due:
                if finding.check == GIVES_TIMES:
                    _give_times(directory, finding.entries, repaired)
        except OSError as error:
            into = f" to {repaired.folder}" if repaired.moved else ""
            raise UnusableCacheError(
                f"{directory}: {len(repaired.moved)} bad entries were moved{into}, then it failed: "
                f"{error}. Expected a directory that this user can write: run this as the user "
                "whose programs fill it."
            ) from None
    return repaired


def _move(directory: Path, entries: list[Entry], repaired: Repaired) -> None:
    folder: Path | None = None
    try:
        for entry in entries:
            source = directory / (entry.name + CACHE_SUFFIX)
            try:
                status = os.lstat(source) if source.is_symlink() else os.stat(source)
                now = status.st_ino, status.st_mtime_ns, status.st_size
                if now != (entry.inode, entry.written_ns, entry.size_bytes):
                    repaired.changed.append(entry.name)
                    continue
                folder = folder or _new_folder(directory)
                os.rename(source, folder / source.name)
                repaired.moved.append(entry.name)
                repaired.folder = str(folder)
                used = directory / (entry.name + ATIME_SUFFIX)
                os.rename(used, folder / used.name)
            except FileNotFoundError:
                if entry.name not in repaired.moved[-1:]:  # only the time of use may be missing
                    repaired.gone.append(entry.name)
    finally:
        if folder is not None and not repaired.moved:
            folder.rmdir()  # ours, and empty: another was faster, or the move was refused


def _new_folder(directory: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for number in itertools.count(1):
        folder = directory / (QUARANTINE_PREFIX + stamp + (f"-{number}" if number > 1 else ""))
        with contextlib.suppress(FileExistsError):  # no two share one, so no name meets another
            folder.mkdir()
            break
    return folder


def _give_times(directory: Path, names: Iterable[str], repaired: Repaired) -> None:
    """Write the time 0 where there is none: JAX writes its own under the lock that is held."""
    for name in names:
        if not (directory / (name + CACHE_SUFFIX)).exists():
            continue
        with contextlib.suppress(FileExistsError):
            with (directory / (name + ATIME_SUFFIX)).open("xb") as file:
                file.write(bytes(8))
            repaired.timed.append(name)
