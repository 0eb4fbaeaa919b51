"""What JAX will do with a directory: by its files, the settings, the release, and who asks."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from packaging.version import Version

from harness.cache.directory import ATIME_SUFFIX, LOCK_FILE
from harness.cache.survey import Entry, Survey

with suppress(ImportError):  # Windows has none, and only reads
    import grp
    import pwd

_HEALED = (0, 11, 1)
"""The release of JAX from which eviction accepts an entry without a time of use (jax#39883)."""

_PATH_LEFT_OUT = (0, 11, 0)
"""The release from which the path of the directory is not in the key."""

LEAST_ROOM_BYTES = 64 << 10
"""What an empty directory needs: the entry of a small program."""

Blocked = Literal["disabled", "cap-of-zero", "no-lock", "not-writable", "missing-times", "no-room"]


class CacheSettings(msgspec.Struct, frozen=True):
    """JAX's settings of the cache in this environment; a program may set others itself.

    Attributes:
        directory: `JAX_COMPILATION_CACHE_DIR`; empty if it is not set.
        max_size_bytes: The size cap; -1 for none.
        given: The variables that are set; the others are JAX's defaults.
    """

    directory: str = ""
    enabled: bool = True
    max_size_bytes: int = -1
    min_compile_s: float = 1.0
    min_entry_bytes: int = 0
    given: tuple[str, ...] = ()


class Room(msgspec.Struct, frozen=True):
    """What the asking user may still write to a file system; None where nothing tells.

    Attributes:
        quota_bytes: What is left of the user's quota.
        quota_files: How many files are left of it.
    """

    free_bytes: int | None = None
    free_files: int | None = None
    quota_bytes: int | None = None
    quota_files: int | None = None

    @property
    def bytes_left(self) -> int | None:
        """The least of what is free and of what the quota leaves."""
        both = [one for one in (self.free_bytes, self.quota_bytes) if one is not None]
        return min(both, default=None)

    @property
    def files_left(self) -> int | None:
        """The same in files."""
        both = [one for one in (self.free_files, self.quota_files) if one is not None]
        return min(both, default=None)


class Here(msgspec.Struct, frozen=True):
    """What JAX will do with this directory.

    Attributes:
        release: The JAX that will use it, such as `0.12.0.1`; empty if nobody knows.
        local: Whether it is on this machine, so that rights and room can be looked at.
        capped: Whether programs use it with a size cap, as is set or as the directory shows.
        user: Who asks; `owner` and `mode` are the directory's.
        read_only: Whether its file system is mounted so.
        no_time: Entries whose time of use this user cannot write, as each read under a cap does.
        needed_bytes: What the next write needs: as much as the largest entry.
        reads: Whether JAX can look up entries.
        blocked: Why JAX writes nothing; empty if it writes.
    """

    settings: CacheSettings
    release: str = ""
    local: bool = False
    capped: bool = False
    user: str = ""
    owner: str = ""
    mode: int = 0
    read_only: bool = False
    no_time: tuple[str, ...] = ()
    room: Room = Room()
    needed_bytes: int = 0
    reads: bool = True
    blocked: tuple[Blocked, ...] = ()

    @property
    def needs_times(self) -> bool:
        """Whether this release fails every write under a cap beside an entry without its time."""
        return bool(self.release) and Version(self.release).release < _HEALED

    @property
    def hashes_path(self) -> bool:
        """Whether this release has the directory's path in every key."""
        return bool(self.release) and Version(self.release).release < _PATH_LEFT_OUT


_VARIABLES = (
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_ENABLE_COMPILATION_CACHE",
    "JAX_COMPILATION_CACHE_MAX_SIZE",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES",
)

_OFF = ("0", "n", "no", "f", "false", "off")
"""As JAX reads a variable that is true or false."""


def settings(max_size_bytes: int | None = None) -> CacheSettings:
    """Read the settings of this environment; a size cap that is given counts instead of its own."""
    given = tuple(name for name in _VARIABLES if name in os.environ)
    default = CacheSettings()

    def number(name: str, otherwise: float) -> float:
        with suppress(ValueError):
            return float(os.environ.get(name, otherwise))
        return otherwise  # JAX refuses to start with it

    directory, enabled, cap, seconds, size = _VARIABLES
    cap_bytes = int(number(cap, -1)) if max_size_bytes is None else max_size_bytes
    return CacheSettings(
        os.environ.get(directory, ""),
        os.environ.get(enabled, "true").lower() not in _OFF,
        cap_bytes,
        number(seconds, default.min_compile_s),
        int(number(size, default.min_entry_bytes)),
        given,
    )


def look_here(survey: Survey, used: CacheSettings, release: str = "") -> Here:
    """Describe what a JAX of some release does with a directory under these settings."""
    ours = [entry for entry in survey.entries if entry.key]
    capped = used.max_size_bytes >= 0 or survey.capped
    orphans = capped and any(map(is_orphan, ours))
    needed = max((entry.size_bytes for entry in ours), default=LEAST_ROOM_BYTES)
    here = Here(used, release, "://" not in survey.directory, capped, needed_bytes=needed)
    if here.local and hasattr(os, "geteuid"):
        here = _with_rights(here, Path(survey.directory).resolve(), ours)
    room = here.room.bytes_left, here.room.files_left
    blocked: dict[Blocked, bool] = {
        "disabled": not used.enabled,
        "cap-of-zero": used.max_size_bytes == 0,
        "no-lock": not here.reads,
        "not-writable": "not-writable" in here.blocked,
        "missing-times": orphans and here.needs_times,
        "no-room": (room[0] is not None and room[0] < needed) or room[1] == 0,
    }
    codes = tuple(code for code, applies in blocked.items() if applies)
    return msgspec.structs.replace(here, blocked=codes)


def is_orphan(entry: Entry) -> bool:
    """Whether a whole entry has no time of use beside it, as a size cap needs."""
    return entry.contents.state in ("readable", "needs-zstd") and entry.used_source != "atime-file"


def _with_rights(here: Here, place: Path, entries: Iterable[Entry]) -> Here:
    status, lock = place.stat(), place / LOCK_FILE
    writes = _may(place, os.W_OK | os.X_OK)
    locks = _may(lock, os.R_OK | os.W_OK) if lock.exists() else writes
    no_time = tuple(
        entry.name
        for entry in (entries if here.capped and locks else ())
        if entry.used_source == "atime-file"
        and not _may(place / (entry.name + ATIME_SUFFIX), os.W_OK)
    )
    return msgspec.structs.replace(
        here,
        user=user_name(os.geteuid()),
        owner=user_name(status.st_uid),
        mode=stat.S_IMODE(status.st_mode),
        read_only=bool(os.statvfs(place).f_flag & os.ST_RDONLY),
        no_time=no_time,
        room=_room(place),
        reads=locks or not here.capped,
        blocked=() if writes else ("not-writable",),
    )


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def user_name(uid: int) -> str:
    """The name of a user, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def group_name(gid: int) -> str:
    """The name of a group, or its number where it has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return f"group {gid}"


# What is free, and what a quota leaves


def _room(place: Path) -> Room:
    free = os.statvfs(place)
    blocks = free.f_bfree if os.geteuid() == 0 else free.f_bavail
    files = free.f_favail if free.f_files else None  # some file systems do not count them
    return Room(blocks * free.f_frsize, files, *_quota(place))


_QUOTACTL_FD, _GET_USER_QUOTA = 443, 0x80000700
"""Linux, from 5.14 on, on every processor; `QCMD(Q_GETQUOTA, USRQUOTA)`."""

_DQBLK = struct.Struct("<8QI4x")
"""Limits, soft limits and use in blocks of 1 KiB, then in files; use is counted in bytes."""


def _quota(place: Path) -> tuple[int | None, int | None]:
    if os.geteuid() == 0 or not hasattr(os, "O_PATH"):  # no quota binds root
        return None, None
    data = ctypes.create_string_buffer(_DQBLK.size)
    opened = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
        done = call(_QUOTACTL_FD, opened, ctypes.c_uint(_GET_USER_QUOTA), os.geteuid(), data)
    finally:
        os.close(opened)
    if done != 0:  # no quota here, an older kernel, or a file system that has its own
        return None, None
    hard, _, used, hard_files, _, files, *_ = _DQBLK.unpack(data.raw)
    left = max(0, hard * 1024 - used) if hard else None
    return left, max(0, hard_files - files) if hard_files else None
