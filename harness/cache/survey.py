"""Every entry of a cache directory, what they add up to, and which of them a size cap would evict.

All is read without importing JAX or the program that wrote it.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from harness.cache.directory import (
    ATIME_SUFFIX,
    CACHE_SUFFIX,
    LOCK_FILE,
    Directory,
    LocalDirectory,
)
from harness.cache.entry import Contents, read_contents
from harness.cache.executable import XlaOptions

QUARANTINE_PREFIX = "quarantine-"
"""Begins the name of a folder of entries that were moved aside."""

SUB_CACHE_PREFIX = "xla_"
"""XLA keeps caches of its own beside the entries: `xla_gpu_per_fusion_autotune_cache_dir`, ..."""

AT_ONCE_NS = 1_000_000_000
"""JAX writes an entry and its time of use one after the other: within this, nobody read between."""

NAME = re.compile(r"(?P<module>.+)-(?P<key>[0-9a-f]{64})", re.DOTALL)

Source = Literal["atime-file", "file-system", "unknown"]


class Entry(msgspec.Struct, frozen=True):
    """One entry of the cache; times in seconds since 1970.

    Attributes:
        name: The file's name without its ending `-cache`; what JAX calls the cache key.
        key: The 64 digits after it; empty if the name has none, so that JAX did not choose it.
        used_at: When it was last used, as far as `used_source` can know; None if nothing knows.
        used_source: `atime-file`: JAX wrote it, as it does under a size cap. `file-system`: the
            file's time of last access, which backups and copies change too.
        never_read: Whether nothing read it since it was written; None if nothing can tell.
        used_ns: `used_at` in nanoseconds, as JAX compares it.
        inode: With `written_ns`, tells the file that was read from a later one of its name.
        read_at: When it was read: reading a large cache takes longer than writing an entry.
    """

    name: str
    module: str
    key: str
    size_bytes: int
    written_at: float
    used_at: float | None
    used_source: Source
    never_read: bool | None
    contents: Contents
    used_ns: int | None = None
    written_ns: int = 0
    inode: int | None = None
    mode: int | None = None
    owner: int | None = None
    group: int | None = None
    read_at: float = 0.0


class SubCache(msgspec.Struct, frozen=True):
    """A cache that XLA keeps inside JAX's directory, counted but not read."""

    name: str
    files: int
    size_bytes: int


class Survey(msgspec.Struct, frozen=True):
    """A cache directory at one moment.

    Attributes:
        capped: Whether a process used it with a size cap: it has JAX's lock or times of use.
        vanished: How many were listed and gone before they were read, as in a cache in use.
        quarantines: Folders of entries that were moved aside.
        options: XLA's options by the hash that entries have of theirs.
    """

    directory: str
    taken_at: float
    capped: bool
    entries: tuple[Entry, ...]
    vanished: int = 0
    sub_caches: tuple[SubCache, ...] = ()
    quarantines: tuple[str, ...] = ()
    options: dict[str, XlaOptions] = {}


def survey(directory: Directory, now: float | None = None) -> Survey:
    """Read a whole cache directory; the contents of one entry are in memory at a time."""
    names, local = sorted(directory.names()), isinstance(directory, LocalDirectory)
    present = set(names)
    entries, vanished, options = list[Entry](), 0, dict[str, XlaOptions]()
    for name in names:
        if name.endswith(CACHE_SUFFIX):
            try:
                entries.append(_read_entry(directory, name[: -len(CACHE_SUFFIX)], present, options))
            except FileNotFoundError:
                vanished += 1
    return Survey(
        directory=directory.where,
        taken_at=time.time() if now is None else now,
        capped=LOCK_FILE in present or any(name.endswith(ATIME_SUFFIX) for name in names),
        entries=tuple(entries),
        vanished=vanished,
        sub_caches=tuple(sub_caches(directory.path)) if local else (),
        quarantines=tuple(name for name in names if name.startswith(QUARANTINE_PREFIX)),
        options=options,
    )


def _read_entry(
    directory: Directory, name: str, present: set[str], options: dict[str, XlaOptions]
) -> Entry:
    read_at = time.time()
    file = directory.look(name + CACHE_SUFFIX)  # opening it may change its time of last access
    contents = _contents(directory, name, file.st_mode, options)
    matched = NAME.fullmatch(name)
    used_ns, slack_ns = file.st_atime_ns, 0
    source: Source = "unknown" if used_ns is None else "file-system"
    if name + ATIME_SUFFIX in present:
        try:
            with directory.open(name + ATIME_SUFFIX) as times:
                used_ns = int.from_bytes(times.read(8), "little")
            source, slack_ns = "atime-file", AT_ONCE_NS
        except OSError:
            pass  # evicted, or not ours to read, since the names were listed
    return Entry(
        name=name,
        module=matched["module"] if matched else name,
        key=matched["key"] if matched else "",
        size_bytes=file.st_size,
        written_at=file.st_mtime_ns / 1e9,
        used_at=None if used_ns is None else used_ns / 1e9,
        used_source=source,
        # A write sets both times of a file, and the usual mount options (relatime) let the first
        # read after a write through.
        never_read=None if used_ns is None else used_ns <= file.st_mtime_ns + slack_ns,
        contents=contents,
        used_ns=used_ns,
        written_ns=file.st_mtime_ns,
        inode=file.st_ino,
        mode=file.st_mode,
        owner=file.st_uid,
        group=file.st_gid,
        read_at=read_at,
    )


def _contents(
    directory: Directory, name: str, mode: int | None, options: dict[str, XlaOptions]
) -> Contents:
    if mode is not None and not stat.S_ISREG(mode):  # opening it might block
        return Contents("unreadable", "not-a-file")
    try:
        with directory.open(name + CACHE_SUFFIX) as opened:
            return read_contents(opened, options)
    except FileNotFoundError:
        raise
    except OSError as error:
        return Contents("unreadable", "cannot-read", error.strerror or str(error))


def sub_caches(place: Path) -> Iterator[SubCache]:
    """Yield XLA's own caches in a directory: XLA writes them to local ones only."""
    for path in sorted(place.glob(SUB_CACHE_PREFIX + "*")):
        if not path.name.endswith((CACHE_SUFFIX, ATIME_SUFFIX)):
            sizes = list(_file_sizes(path))
            yield SubCache(path.name, len(sizes), sum(sizes))


def _file_sizes(place: Path) -> Iterator[int]:
    # Unlike Path.rglob, os.walk goes on where a folder vanishes or refuses.
    below = (Path(folder, name) for folder, _, names in os.walk(place) for name in names)
    for path in (place, *below):
        try:
            seen = os.stat(path)
        except OSError:
            continue  # in use: gone since it was listed, or another user's
        if stat.S_ISREG(seen.st_mode):
            yield seen.st_size


class Evictions(msgspec.Struct, frozen=True):
    """What a size cap would evict, in JAX's order.

    Attributes:
        size_bytes: What the cap is held against: the entries alone, without XLA's caches.
        due: Names that the next write would evict whatever its size.
        then: The names that follow once a write needs room.
        unordered: How many entries have no recorded time of use. JAX takes them first, in the order
            of their names; jax 0.10.2 cannot write at all while there is one.
    """

    max_size_bytes: int
    size_bytes: int
    due: tuple[str, ...]
    then: tuple[str, ...]
    unordered: int


MOST_THEN = 5
"""So many names are given beyond those that are due."""


def evictions(entries: Iterable[Entry], max_size_bytes: int) -> Evictions:
    """What a size cap would evict next, in the order of JAX's cache: oldest use, then name.

    `max_size_bytes` is the cap, as in jax_compilation_cache_max_size.
    """

    def recorded(entry: Entry) -> int:
        # jax 0.11.2 and later give an entry without a recorded time of use the time 0.
        return (entry.used_ns or 0) if entry.used_source == "atime-file" else 0

    order = sorted(entries, key=lambda entry: (recorded(entry), entry.name))
    size_bytes = left = sum(entry.size_bytes for entry in order)
    due = 0
    while left > max_size_bytes:
        left -= order[due].size_bytes
        due += 1
    names = tuple(entry.name for entry in order)
    return Evictions(
        max_size_bytes,
        size_bytes,
        due=names[:due],
        then=names[due : due + MOST_THEN],
        unordered=sum(entry.used_source != "atime-file" for entry in order),
    )
