"""Who else can write to a cache directory: an entry is code that JAX will run.

Permissions and owners are looked at, from the directory up to the root, because whoever can rename
a parent can put another directory in its place. Access control lists are not seen.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from harness.cache.entries import Entry
from harness.cache.listing import user_name


class Writer(msgspec.Struct, frozen=True):
    """Somebody who can write where they should not.

    Attributes:
        who: `everyone`, `group` or `owner`.
        name: Of the group or the owner.
        what: The path that they can write.
    """

    who: Literal["everyone", "group", "owner"]
    name: str
    what: str


def writers_of(directory: Path) -> list[Writer]:
    """Who, other than this user and root, can change what lies in a directory."""
    found: list[Writer] = []
    place = directory.resolve()
    for path in [place, *place.parents]:
        try:
            seen = path.stat()
        except OSError:
            continue  # a parent that this user may pass through but not look at
        # In a sticky directory (/tmp) a name can be changed by its owner only; but a new one, which
        # in the cache itself is a new entry, can be made by all who can write.
        exempt = path != place and seen.st_mode & stat.S_ISVTX
        if seen.st_mode & stat.S_IWOTH and not exempt:
            found.append(Writer("everyone", "", str(path)))
        elif seen.st_mode & stat.S_IWGRP and not exempt and is_shared(seen.st_gid, seen.st_uid):
            found.append(Writer("group", _group_name(seen.st_gid), str(path)))
        if seen.st_uid not in (0, os.geteuid()):
            found.append(Writer("owner", user_name(seen.st_uid), str(path)))
    return found


def writable_entries(entries: Iterable[Entry]) -> list[str]:
    """Names of entries that everyone can overwrite."""
    return [
        entry.name
        for entry in entries
        if entry.mode and stat.S_ISREG(entry.mode) and entry.mode & stat.S_IWOTH
    ]  # a link shows every permission, and grants none


def is_shared(gid: int, uid: int) -> bool:
    """Whether a group has members besides one user, whose private group it otherwise is."""
    import grp

    if gid == 0:
        return False  # root's own group
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return True
    return group.gr_name != user_name(uid) or bool(set(group.gr_mem) - {user_name(uid)})


def _group_name(gid: int) -> str:
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return f"group {gid}"
