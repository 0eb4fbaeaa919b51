"""Every entry of a cache directory, read without importing JAX or the program that wrote it."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from harness.cache.contents import Contents, read_contents
from harness.cache.listing import (
    ATIME_SUFFIX,
    CACHE_SUFFIX,
    LOCK_FILE,
    Directory,
    File,
    LocalDirectory,
)

QUARANTINE_PREFIX = "quarantine-"
"""Begins the name of a folder of entries that were moved aside."""

SUB_CACHE_PREFIX = "xla_"
"""XLA keeps caches of its own beside the entries: `xla_gpu_per_fusion_autotune_cache_dir`, ..."""

AT_ONCE_NS = 1_000_000_000
"""JAX writes an entry and its time of use one after the other: within this, nobody read between."""

NAME = re.compile(r"(?P<module>.+)-(?P<key>[0-9a-f]{64})", re.DOTALL)


class Entry(msgspec.Struct, frozen=True):
    """One entry of the cache; times in seconds since 1970.

    Attributes:
        name: The file's name without its ending `-cache`; what JAX calls the cache key.
        module: The name of the compiled module, such as `jit_f`.
        key: The 64 digits after it; empty if the name has none, so that JAX did not choose it.
        size_bytes: Its size on the disk, compressed.
        written_at: When the file was last written.
        used_at: When it was last used, as far as `used_source` can know; None if nothing knows.
        used_source: `atime-file`: JAX wrote it, as it does under a size cap. `file-system`: the
            file's time of last access, which backups and copies change too.
        never_read: Whether nothing read it since it was written; None if nothing can tell.
        contents: What is inside.
        used_ns: `used_at` in nanoseconds, as JAX compares it.
        written_ns: `written_at` in nanoseconds.
        inode: With `written_ns`, tells the file that was read from a later one of its name.
        uid: Whose file it is; None in a bucket.
        mode: The file's type and permissions; None in a bucket.
        read_at: When it was read: reading a large cache takes longer than writing an entry.
    """

    name: str
    module: str
    key: str
    size_bytes: int
    written_at: float
    used_at: float | None
    used_source: Literal["atime-file", "file-system", "unknown"]
    never_read: bool | None
    contents: Contents
    used_ns: int | None = None
    written_ns: int = 0
    inode: int | None = None
    uid: int | None = None
    mode: int | None = None
    read_at: float = 0.0


class SubCache(msgspec.Struct, frozen=True):
    """A cache that XLA keeps inside JAX's directory, counted but not read."""

    name: str
    files: int
    size_bytes: int


class Survey(msgspec.Struct, frozen=True):
    """A cache directory at one moment.

    Attributes:
        directory: Where it lies.
        taken_at: When it was read, in seconds since 1970.
        capped: Whether a process used it with a size cap: it has JAX's lock or times of use.
        entries: All entries, in the order of their names.
        vanished: How many were listed and gone before they were read, as in a cache in use.
        stray_times: How many times of use there are whose entry is gone.
        sub_caches: XLA's own caches in the directory.
        quarantines: Folders of entries that were moved aside.
    """

    directory: str
    taken_at: float
    capped: bool
    entries: tuple[Entry, ...]
    vanished: int = 0
    stray_times: int = 0
    sub_caches: tuple[SubCache, ...] = ()
    quarantines: tuple[str, ...] = ()


def survey(directory: Directory, now: float | None = None) -> Survey:
    """Read a whole cache directory; the contents of one entry are in memory at a time."""
    names = directory.names()
    present = set(names)
    entries, vanished = [], 0
    for name in sorted(names):
        if name.endswith(CACHE_SUFFIX):
            try:
                entries.append(read_entry(directory, name, present))
            except FileNotFoundError:
                vanished += 1
    times = {name.removesuffix(ATIME_SUFFIX) for name in names if name.endswith(ATIME_SUFFIX)}
    return Survey(
        directory=directory.where,
        taken_at=time.time() if now is None else now,
        capped=LOCK_FILE in present or bool(times),
        entries=tuple(entries),
        vanished=vanished,
        stray_times=sum(name + CACHE_SUFFIX not in present for name in times),
        sub_caches=tuple(_sub_caches(directory, names)),
        quarantines=tuple(sorted(n for n in names if n.startswith(QUARANTINE_PREFIX))),
    )


def read_entry(directory: Directory, name: str, present: set[str]) -> Entry:
    """Read one entry.

    Args:
        directory: Where it lies.
        name: The file's name, with its ending.
        present: The names in the directory, to know without asking whether it has a time of use.

    Raises:
        FileNotFoundError: If it has vanished.
    """
    read_at = time.time()
    file = directory.look(name)  # before it is opened, which may change its time of last access
    contents = _contents(directory, file)
    bare = name.removesuffix(CACHE_SUFFIX)
    matched = NAME.fullmatch(bare)
    used_ns = None
    if bare + ATIME_SUFFIX in present:
        try:
            with directory.open(bare + ATIME_SUFFIX) as times:
                used_ns = int.from_bytes(times.read(8), "little")
        except OSError:
            used_ns = None  # evicted, or not ours to read, since the names were listed
    recorded = used_ns is not None
    if used_ns is None:
        used_ns = file.atime_ns
    return Entry(
        name=bare,
        module=matched["module"] if matched else bare,
        key=matched["key"] if matched else "",
        size_bytes=file.size_bytes,
        written_at=file.mtime_ns / 1e9,
        used_at=None if used_ns is None else used_ns / 1e9,
        used_source=("atime-file" if recorded else "unknown" if used_ns is None else "file-system"),
        never_read=_never_read(file, used_ns, recorded),
        contents=contents,
        used_ns=used_ns,
        written_ns=file.mtime_ns,
        inode=file.inode,
        uid=file.uid,
        mode=file.mode,
        read_at=read_at,
    )


def _contents(directory: Directory, file: File) -> Contents:
    if not file.is_plain:
        return Contents("unreadable", "it is not an ordinary file")
    try:
        with directory.open(file.name) as opened:
            return read_contents(opened)
    except FileNotFoundError:
        raise
    except OSError as error:
        return Contents("unreadable", f"it cannot be read: {error.strerror or error}")


def _never_read(file: File, used_ns: int | None, recorded: bool) -> bool | None:
    if used_ns is None:
        return None
    # A write sets both times of a file, and the usual mount options (relatime) let the first read
    # after a write through.
    return used_ns <= file.mtime_ns + (AT_ONCE_NS if recorded else 0)


def _sub_caches(directory: Directory, names: Iterable[str]) -> Iterator[SubCache]:
    if not isinstance(directory, LocalDirectory):
        return  # XLA writes its own caches to local directories only
    for name in sorted(names):
        place = directory.path / name
        if not name.startswith(SUB_CACHE_PREFIX) or name.endswith((CACHE_SUFFIX, ATIME_SUFFIX)):
            continue
        files = size_bytes = 0
        for path in [place, *_below(place)]:
            try:
                seen = os.stat(path)
            except OSError:
                continue  # in use: gone since it was listed, or another user's
            if stat.S_ISREG(seen.st_mode):
                files, size_bytes = files + 1, size_bytes + seen.st_size
        yield SubCache(name, files, size_bytes)


def _below(folder: Path) -> Iterator[Path]:
    # Unlike Path.rglob, os.walk goes on where a folder vanishes or refuses.
    for place, _, names in os.walk(folder):
        for name in names:
            yield Path(place, name)
