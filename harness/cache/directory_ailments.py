"""What may ail a cache directory as a whole."""

from __future__ import annotations

import os
import shlex
import stat
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from harness.cache.ailment import Ailment, Examined, Sign
from harness.cache.directory import ATIME_SUFFIX, CACHE_SUFFIX, FILE_ADDRESS, LOCK_FILE
from harness.cache.survey import Entry
from harness.cache.written import SEE_WHY, would_write
from harness.records.units import counted

with suppress(ImportError):  # Windows has none, and only reads
    import grp
    import pwd

SLOW_PUT_S = 0.1

_XATTR = "system.posix_acl_access"
_VERSION = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_USER, _GROUP_OF_FILE, _GROUP, _MASK = 0x02, 0x04, 0x08, 0x10
_WRITE = 2
"""The list as Linux keeps it: a version, then tag, permissions and number of each entry."""


def _open_to_others(examined: Examined) -> Iterator[Sign]:
    """Look at permissions and owners, from the directory up to the root, and at the entries.

    Whoever can rename a parent can put another directory in its place. On Windows a file's
    mode says nothing of it.
    """
    if not (examined.local and hasattr(os, "geteuid")):
        return
    place = Path(examined.survey.directory).resolve()
    for path in (place, *place.parents):
        try:
            seen = path.stat()
        except OSError:
            continue  # a parent that this user may pass through but not look at
        # In a sticky directory (/tmp) a name can be changed by its owner only; but a new one, which
        # in the cache itself is a new entry, can be made by all who can write.
        exempt = path != place and seen.st_mode & stat.S_ISVTX
        told = f"can write to {path}, and an entry is code that JAX runs"
        if seen.st_mode & stat.S_IWOTH and not exempt:
            remedy = _TAKE_AWAY.format(f"chmod o-w {path}")
            yield Sign((), f"everyone on this machine {told}", remedy=remedy)
        elif not exempt:
            for who in writers(str(path), seen.st_mode, seen.st_uid, seen.st_gid):
                remedy = f"If {who} may run code as you, nothing; else `chmod g-w {path}`."
                yield Sign((), f"{who} {told}", "ailing", remedy)
        if seen.st_uid not in (0, os.geteuid()):
            owner = user_name(seen.st_uid)
            remedy = f"If {owner} may run code as you, nothing; else use a directory of your own."
            yield Sign((), f"{owner}, whose it is, {told}", "ailing", remedy)
    yield from _entries_of_others(place, examined.survey.entries)


def _entries_of_others(place: Path, entries: Iterable[Entry]) -> Iterator[Sign]:
    plain = [one for one in entries if one.mode and stat.S_ISREG(one.mode)]
    # A link shows every permission, and grants none.
    everyone = [one for one in plain if (one.mode or 0) & stat.S_IWOTH]
    if everyone:
        yield Sign(
            everyone,
            f"everyone on this machine can overwrite {counted(len(everyone), 'entry')}, and an "
            "entry is code that JAX runs",
        )
    others: dict[str, list[Entry]] = defaultdict(list)
    for one in plain:
        if one.owner is not None and one.owner not in (0, os.geteuid()):
            others[user_name(one.owner)].append(one)
        elif one.owner is not None and one.group is not None:
            path = f"{place}/{one.name}{CACHE_SUFFIX}"
            for who in writers(path, one.mode or 0, one.owner, one.group):
                others[who].append(one)
    for who, entries in others.items():
        yield Sign(
            entries,
            f"{who} can overwrite {counted(len(entries), 'entry')}, and an entry is code that JAX "
            "runs",
            "ailing",
            f"If {who} may run code as you, nothing; else fill a directory of your own.",
        )


_TAKE_AWAY = (
    "Take the permission away (`{}`), and fill a new directory if you do not know who used it."
)


def _slow_put(examined: Examined) -> Iterator[Sign]:
    cost = examined.put_cost if examined.capped else None
    if cost is not None and cost.capped_s >= SLOW_PUT_S:
        yield Sign(
            (),
            f"a write under a size cap costs {cost.capped_s * 1e3:.0f} ms at {cost.entries} "
            f"entries, {cost.first_s * 1e3:.1f} ms at none",
        )


def _over_cap(examined: Examined) -> Iterator[Sign]:
    cap = examined.max_size_bytes
    if cap == 0:
        yield Sign((), "with a size cap of 0 bytes JAX stores nothing")
    elif large := [one for one in examined.survey.entries if one.size_bytes > cap > 0]:
        yield Sign(
            large,
            f"{counted(len(large), 'entry')} larger than the whole size cap of {cap} bytes: once "
            "evicted, JAX compiles them in each process and does not store them",
        )


def _rights(examined: Examined) -> Iterator[Sign]:
    """Look at what the asking user may do here; what it may not read is `unreadable`."""
    if not (examined.local and hasattr(os, "geteuid")):
        return
    place = Path(examined.survey.directory).resolve()
    lock, status = place / LOCK_FILE, place.stat()
    writes = _may(place, os.W_OK | os.X_OK)
    user, owner = user_name(os.geteuid()), user_name(status.st_uid)
    shown = f"its owner is {owner}, its mode {stat.S_IMODE(status.st_mode):o}"
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        shown = "its file system is mounted read-only"
    ask = _ASK.format(owner=owner, user=user, place=shlex.quote(str(place)))
    if examined.capped and not (_may(lock, os.R_OK | os.W_OK) if lock.exists() else writes):
        yield Sign(
            (),
            f"{user} can neither write to {place} nor open JAX's lock in it, which every use under "
            f"a size cap needs ({shown}): JAX reads nothing, and compiles all in each process",
            "ailing",
            f"Without a cap (jax_compilation_cache_max_size=-1) JAX needs no lock to read. {ask}",
        )
        return
    timed = [
        one
        for one in (examined.survey.entries if examined.capped else ())
        if one.used_source == "atime-file" and not _may(place / (one.name + ATIME_SUFFIX), os.W_OK)
    ]
    if timed:
        yield Sign(
            timed,
            f"{user} cannot write the time of use of {counted(len(timed), 'entry')}, as each read "
            "under a size cap does: JAX compiles them in each process",
            "ailing",
            f"Without a cap (jax_compilation_cache_max_size=-1) JAX writes nothing to read. {ask}",
        )
    if not writes:
        evidence = f"{user} cannot write to {place} ({shown}): JAX reads what is there, and warns"
        yield Sign((), f"{evidence} at each program that it cannot store")


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


_ASK = (
    "Ask {owner} for `setfacl -m u:{user}:rwx {place}`, run as {owner}, or use a directory of "
    "your own."
)


def _nothing_there(examined: Examined) -> Iterator[Sign]:
    if not examined.survey.entries:
        yield Sign((), would_write())


def _file_address(examined: Examined) -> Iterator[Sign]:
    if "file:" in Path(examined.survey.directory).parts:
        evidence = f"a folder named `file:`, which is where it leads here: {FILE_ADDRESS}"
        yield Sign((), evidence)


AILMENTS = (
    Ailment(
        "no-entries",
        "note",
        f"To see why nothing was written: {SEE_WHY}",
        _nothing_there,
    ),
    Ailment(
        "file-address",
        "note",
        "Give the directory's path, without file://.",
        _file_address,
    ),
    Ailment(
        "rights",
        "note",
        "If programs are to read only, nothing. Else use a directory of your own, or ask the "
        "owner for the permission to write.",
        _rights,
    ),
    Ailment(
        "over-cap",
        "ailing",
        "Raise the cap (jax_compilation_cache_max_size); -1 is none.",
        _over_cap,
    ),
    Ailment("others-can-write", "unusable", _TAKE_AWAY.format("chmod o-w"), _open_to_others),
    Ailment(
        "slow-put",
        "ailing",
        "Use fewer entries: a cap that fits fewer, a higher "
        "jax_persistent_cache_min_compile_time_secs, one directory per program; or no cap and a "
        "clean-up by age while nothing runs.",
        _slow_put,
    ),
)


def writers(path: str, mode: int, uid: int, gid: int) -> Iterator[str]:
    """Name the users and groups that may write to a file of that mode, owner and group.

    The owner is left out, root as well, and everyone, whom the mode tells.
    """
    if not mode & stat.S_IWGRP:  # with a list, these bits are the most that anybody named may do
        return
    listed = list(_entries(path))
    mask = next((allowed for tag, allowed, _ in listed if tag == _MASK), 7)
    for tag, allowed, number in listed:
        if not allowed & mask & _WRITE:
            continue
        if tag == _USER and number not in (0, uid, os.geteuid()):
            yield user_name(number)
        elif tag == _GROUP:
            yield f"the group {group_name(number)}"
        elif tag == _GROUP_OF_FILE and is_shared(gid, uid):
            yield f"the group {group_name(gid)}"


def _entries(path: str) -> Iterator[tuple[int, int, int]]:
    """Yield tag, permissions and number of each entry; without a list, the group alone."""
    try:
        data = os.getxattr(path, _XATTR)
    except (OSError, AttributeError):  # no list, no such file system, or not Linux
        data = b""
    if not data:
        yield _GROUP_OF_FILE, _WRITE, 0
    yield from _ENTRY.iter_unpack(data[_VERSION.size :])


def is_shared(gid: int, uid: int) -> bool:
    """Whether a group has members besides one user, whose private group it otherwise is."""
    if gid == 0:
        return False  # root's own group
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return True
    return group.gr_name != user_name(uid) or bool(set(group.gr_mem) - {user_name(uid)})


def group_name(gid: int) -> str:
    """The name of a group, or its number where it has none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return f"group {gid}"


def user_name(uid: int) -> str:
    """The name of a user, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
