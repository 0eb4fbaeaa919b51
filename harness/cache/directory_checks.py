"""What may be wrong with a cache directory as a whole."""

from __future__ import annotations

import os
import shlex
import stat
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from harness.cache.directory import CACHE_SUFFIX
from harness.cache.finding import CacheFinding, Fix, Look, names
from harness.cache.here import group_name, user_name
from harness.cache.survey import Entry

with suppress(ImportError):  # Windows has none, and only reads
    import grp

SLOW_PUT_S = 0.1

EVERYONE = "everyone"

Who = tuple[Literal["everyone", "owner", "user", "group"], str]
"""Who may write, and the name."""

_XATTR = "system.posix_acl_access"
_VERSION = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_USER, _GROUP_OF_FILE, _GROUP, _MASK = 0x02, 0x04, 0x08, 0x10
_WRITE = 2
"""The list as Linux stores it: a version, then tag, permissions and number of each entry."""


def _others_can_write(look: Look) -> Iterator[CacheFinding]:
    """Look at permissions and owners, from the directory up to the root, and at the entries.

    Whoever can rename a parent can put another directory in its place. On Windows a file's
    mode says nothing of it.
    """
    if not (look.here.local and hasattr(os, "geteuid")):
        return
    place = Path(look.survey.directory).resolve()
    for path in (place, *place.parents):
        try:
            status = path.stat()
        except OSError:
            continue  # a parent that this user may pass through but not look at
        # In a sticky directory (/tmp) a name can be changed by its owner only; but a new one, which
        # in the cache itself is a new entry, can be made by all who can write.
        exempt = path != place and status.st_mode & stat.S_ISVTX
        if status.st_mode & stat.S_IWOTH and not exempt:
            yield _writable(("everyone", EVERYONE), str(path))
        elif not exempt:
            for who in writers(str(path), status.st_mode, status.st_uid, status.st_gid):
                yield _writable(who, str(path))
        if status.st_uid not in (0, os.geteuid()):
            yield _writable(("owner", user_name(status.st_uid)), str(path))
    yield from _entries_of_others(place, look.entries)


def _writable(who: Who, path: str, entries: Iterable[Entry] = ()) -> CacheFinding:
    """Say who can write to a path, or to entries in it."""
    kind, name = who
    bits = {"everyone": "o-w", "group": "g-w"}.get(kind, "")
    place = shlex.quote(path)
    files = f"{place}/*{CACHE_SUFFIX}" if entries else place
    fix = Fix("permission", f"chmod {bits} {files}") if bits else Fix("own-directory")
    severity: Literal["unusable", "problem"] = "unusable" if kind == "everyone" else "problem"
    facts = {"path": path, "who": kind, "name": name}
    return CacheFinding(
        "others-can-write", names(list(entries)), severity, "runs-code-of-others", fix, facts
    )


def _entries_of_others(place: Path, entries: Iterable[Entry]) -> Iterator[CacheFinding]:
    plain = [one for one in entries if one.mode and stat.S_ISREG(one.mode)]
    others: dict[Who, list[Entry]] = defaultdict(list)
    for one in plain:
        # A link shows every permission, and grants none.
        if (one.mode or 0) & stat.S_IWOTH:
            others["everyone", EVERYONE].append(one)
        if one.owner is not None and one.owner not in (0, os.geteuid()):
            others["owner", user_name(one.owner)].append(one)
        elif one.owner is not None and one.group is not None:
            path = f"{place}/{one.name}{CACHE_SUFFIX}"
            for who in writers(path, one.mode or 0, one.owner, one.group):
                others[who].append(one)
    for who, theirs in others.items():
        yield _writable(who, str(place), theirs)


def _rights(look: Look) -> Iterator[CacheFinding]:
    """Look at what the asking user may not do here; what it may not read is `unreadable`."""
    here, place = look.here, shlex.quote(look.survey.directory)
    facts = {
        "user": here.user,
        "owner": here.owner,
        "mode": f"{here.mode:o}",
        "read_only": here.read_only,
    }
    ask = Fix("ask-owner", f"setfacl -m u:{here.user}:rwx {place}")
    no_cap = Fix("no-cap", "JAX_COMPILATION_CACHE_MAX_SIZE=-1")
    if not here.reads:
        yield CacheFinding(
            "rights", (), "problem", "reads-fail", no_cap, {**facts, "denied": "lock"}
        )
    elif here.no_time:
        facts["denied"] = "times"
        yield CacheFinding("rights", here.no_time, "problem", "reads-fail", no_cap, facts)
    elif "not-writable" in here.blocked:
        facts["denied"] = "write"
        yield CacheFinding("rights", (), "note", "not-stored", ask, facts)


def _no_room(look: Look) -> Iterator[CacheFinding]:
    room = look.here.room
    if "no-room" in look.here.blocked:
        facts = {
            "free_bytes": room.free_bytes,
            "free_files": room.free_files,
            "quota_bytes": room.quota_bytes,
            "quota_files": room.quota_files,
            "needed_bytes": look.here.needed_bytes,
        }
        yield CacheFinding("no-room", (), "problem", "tears-entries", Fix("make-room"), facts)


def _over_cap(look: Look) -> Iterator[CacheFinding]:
    cap = look.here.settings.max_size_bytes
    large = [entry for entry in look.entries if entry.size_bytes > cap >= 0]
    if cap == 0 or large:
        fix = Fix("larger-cap", "JAX_COMPILATION_CACHE_MAX_SIZE=-1")
        concerned = names(large) if cap else ()
        yield CacheFinding(
            "over-cap", concerned, "problem", "not-stored", fix, {"max_size_bytes": cap}
        )


def _slow_put(look: Look) -> Iterator[CacheFinding]:
    cost = look.put_cost if look.here.capped else None
    if cost is not None and cost.capped_s >= SLOW_PUT_S:
        facts = {"capped_s": cost.capped_s, "first_s": cost.first_s, "of": cost.entries}
        yield CacheFinding("slow-put", (), "problem", "slow-writes", Fix("fewer-entries"), facts)


def _no_entries(look: Look) -> Iterator[CacheFinding]:
    if not look.survey.entries:
        fix = Fix("see-why", "harness cache ledger -o run.jsonl -- python PROGRAM.py")
        yield CacheFinding("no-entries", (), "note", "none", fix)


def _file_address(look: Look) -> Iterator[CacheFinding]:
    if "file:" in Path(look.survey.directory).parts:
        yield CacheFinding("file-address", (), "note", "none", Fix("plain-path"))


CHECKS: dict[str, Callable[[Look], Iterator[CacheFinding]]] = {
    "no-entries": _no_entries,
    "file-address": _file_address,
    "rights": _rights,
    "no-room": _no_room,
    "over-cap": _over_cap,
    "others-can-write": _others_can_write,
    "slow-put": _slow_put,
}


def writers(path: str, mode: int, uid: int, gid: int) -> Iterator[Who]:
    """Yield the users and groups that may write to a file of that mode, owner and group.

    The owner is left out, root as well, and everyone, whom the mode shows.
    """
    if not mode & stat.S_IWGRP:  # with a list, these bits are the most that anybody named may do
        return
    listed = list(_entries(path))
    mask = next((allowed for tag, allowed, _ in listed if tag == _MASK), 7)
    for tag, allowed, number in listed:
        if not allowed & mask & _WRITE:
            continue
        if tag == _USER and number not in (0, uid, os.geteuid()):
            yield "user", user_name(number)
        elif tag == _GROUP:
            yield "group", group_name(number)
        elif tag == _GROUP_OF_FILE and is_shared(gid, uid):
            yield "group", group_name(gid)


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
