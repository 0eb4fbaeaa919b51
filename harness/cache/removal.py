"""Entries taken out of a cache: bad ones moved aside, and those that it can do without deleted.

Each is moved into a folder of the directory's by one atomic rename, and only then deleted, if at
all: a program that looks for it at that moment finds it whole, or not at all, and compiles.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from harness.cache.directory import ATIME_SUFFIX, CACHE_SUFFIX, UnusableCacheError, locked
from harness.cache.survey import QUARANTINE_PREFIX, Entry, Survey
from harness.records.files import is_left
from harness.records.units import counted

PREFIX = "pruned-"
"""Begins the name of a folder of entries that are being deleted."""

SETTLE_S = 60.0
"""An entry that is younger than this may still be on its way, and stays."""

CPU, OTHER = "cpu", "other"
TARGETS = (CPU, OTHER)
"""An entry for a CPU says for which processor it is compiled; one for a GPU or TPU does not."""


def superfluous(
    survey: Survey,
    *,
    max_size_bytes: int | None = None,
    unused_s: float | None = None,
    age_s: float | None = None,
    target: str = "",
    only: Collection[str] | None = None,
    keep: Collection[str] = (),
) -> list[Entry]:
    """Return the entries that match every limit, the longest unused first.

    What JAX did not write, or wrote a minute ago, stays.

    Args:
        survey: of the directory.
        max_size_bytes: no more go than must for the whole directory to have so many bytes.
        unused_s: not used for so long, as far as the directory tells.
        age_s: written so long ago.
        target: one of :data:`TARGETS`; empty for all.
        only: names among which they are.
        keep: names that stay, whatever else is said.
    """
    now = survey.taken_at

    def goes(entry: Entry) -> bool:
        made_for = CPU if entry.contents.processor else OTHER
        return (
            bool(entry.key)
            and abs(now - entry.written_at) >= SETTLE_S
            and (age_s is None or now - entry.written_at >= age_s)
            and (unused_s is None or now - used_at(entry) >= unused_s)
            and target in ("", made_for)
            and (only is None or entry.name in only)
            and entry.name not in keep
        )

    order = sorted(filter(goes, survey.entries), key=used_at)
    if max_size_bytes is None:
        return order
    over = sum(entry.size_bytes for entry in survey.entries) - max_size_bytes
    before = itertools.accumulate((entry.size_bytes for entry in order), initial=0)
    return [entry for entry, gone in zip(order, before, strict=False) if gone < over]


def used_at(entry: Entry) -> float:
    """Return when an entry was last of use, in seconds since 1970: read, or else written."""
    return max(entry.used_at or 0.0, entry.written_at)


class Moved(msgspec.Struct):
    """What one call moved.

    Attributes:
        gone: Entries that another process, or another doctor, had taken away before.
        changed: Entries that were written anew after they were read: these were left alone.
    """

    folder: str = ""
    names: list[str] = []
    gone: list[str] = []
    changed: list[str] = []


def move_aside(directory: Path, entries: Iterable[Entry], prefix: str = QUARANTINE_PREFIX) -> Moved:
    """Move entries into a new folder inside the directory, one atomic rename each.

    JAX looks for names that end with `-cache` in the directory itself, so that it never sees the
    folder, which is called after `prefix` and the time.

    An entry that was written anew since it was read stays.
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
                    folder = folder or _new_folder(directory, prefix)
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


def _new_folder(directory: Path, prefix: str) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for number in itertools.count(1):
        folder = directory / (prefix + stamp + (f"-{number}" if number > 1 else ""))
        with contextlib.suppress(FileExistsError):  # no two share one, so no name meets another
            folder.mkdir()
            break
    return folder


def remove(directory: Path, entries: Sequence[Entry]) -> Moved:
    """Delete entries, and what an earlier call that was stopped left in its folder."""
    moved = move_aside(directory, entries, prefix=PREFIX)
    for folder in directory.glob(PREFIX + "*"):
        if str(folder) == moved.folder or is_left(folder):
            shutil.rmtree(folder, ignore_errors=True)  # another call may be at it
    return moved
