"""Records that a worker has made and a client has perhaps not stored: kept on the worker's disk.

A client that goes away, a scheduler that dies or a worker that is killed lose nothing that was
finished: the next sweep into the same results tree fetches what is left here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.errors import StoreError
from harness.records.schema import Problems, Record, decode, digest, read_file
from harness.records.store import Store, store_path

LEAST_BYTES = 64 * 2**20
"""A disk with less room than this takes no order: JAX and XLA write there as well."""


def folder() -> Path:
    """Return where this machine keeps such records: HARNESS_SPOOL, else among the user's state."""
    given = os.environ.get("HARNESS_SPOOL")
    if given:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "jax-harness" / "spool"


def owner_of(results: Path, node: str) -> str:
    """Return who the records of a results tree belong to; says nothing of paths."""
    return digest(node, results.resolve())


def store(owner: str, order: str) -> Store:
    """Return the file of one order's records."""
    return Store(folder() / owner / f"{order}.jsonl")


def trouble(owner: str) -> str:
    """Return why records cannot be kept here, or nothing."""
    place = store(owner, "trial")
    try:
        place.open()
        place.path.unlink(missing_ok=True)
        free = shutil.disk_usage(place.path.parent).free
    except (OSError, StoreError) as error:
        cause = error.__cause__ or error
        why = getattr(cause, "strerror", None) or cause
        return (
            f"the records that wait for their client cannot be written to {place.path.parent}: "
            f"{why}; free space there, or name another folder in HARNESS_SPOOL"
        )
    if free < LEAST_BYTES:
        return (
            f"the disk of {place.path.parent} has {free / 2**20:.0f} MiB left, fewer than "
            f"{LEAST_BYTES / 2**20:.0f}; free some, or name another folder in HARNESS_SPOOL"
        )
    return ""


def kept(owner: str) -> list[Record]:
    """Return what is kept for an owner, in the order in which it was finished."""
    found: list[Record] = []
    with contextlib.suppress(OSError):
        for path in sorted((folder() / owner).glob("*.jsonl"), key=os.path.getmtime):
            found += read_file(path, Problems())
    return found


def fetch(owner: str) -> dict[str, bytes]:
    """Return the content of the files that are kept for an owner, by order."""
    found = {}
    with contextlib.suppress(OSError):
        for path in sorted((folder() / owner).glob("*.jsonl")):
            found[path.stem] = path.read_bytes()
    return found


def forget(owner: str, stored: Mapping[str, int]) -> None:
    """Remove what the client has stored: order to the bytes that its file then had."""
    for order, size in stored.items():
        with contextlib.suppress(OSError):
            store(owner, order).remove(size)


def take_in(results: Path, contents: Iterable[bytes]) -> int:
    """Store what was fetched and a results tree lacks; return how many records that were.

    A tree lacks a record where it has none of its name, or one that is not `ok` in place of one
    that is: what was measured again since then is newer and stays, what was given up is not.

    Raises:
        StoreError: the results folder cannot take them; the workers still have them.
    """
    found: dict[Path, dict[tuple[str, str], Record]] = {}
    for line in (line for content in contents for line in content.splitlines()):
        record = decode(line)
        if isinstance(record, Record):
            path = store_path(results, record.machine, record.commit, record.env, record.night)
            records = found.setdefault(path, {})
            earlier = records.get((record.key, record.replicate))
            if earlier is None or record.status == "ok" or earlier.status != "ok":
                records[record.key, record.replicate] = record
    count = 0
    for path, records in found.items():
        there = {(r.key, r.replicate): r.status for r in Store(path).read()}
        new = [
            record
            for name, record in records.items()
            if name not in there or (record.status == "ok" and there[name] != "ok")
        ]
        Store(path).append(new)
        count += len(new)
    return count
