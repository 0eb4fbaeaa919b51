"""Who may write to a file besides its owner and everyone: its group, or its access control list."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress

from harness.cache.directory import user_name

with suppress(ImportError):  # Windows has none, and only reads
    import grp

_XATTR = "system.posix_acl_access"
_VERSION = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_USER, _GROUP_OF_FILE, _GROUP, _MASK = 0x02, 0x04, 0x08, 0x10
_WRITE = 2
"""The list as Linux keeps it: a version, then tag, permissions and number of each entry."""


def writers(path: str, mode: int, uid: int, gid: int) -> tuple[str, ...]:
    """Name the users and groups that may write to a file of that mode, owner and group.

    The owner is left out, root as well, and everyone, whom the mode tells.
    """
    if not mode & stat.S_IWGRP:  # with a list, these bits are the most that anybody named may do
        return ()
    return tuple(_told(path, uid, gid))


def _told(path: str, uid: int, gid: int) -> Iterator[str]:
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
