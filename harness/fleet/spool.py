"""Records that a worker has made and nobody has stored yet: kept on the worker's disk.

A client that goes away, a scheduler that dies or a worker that is killed lose nothing that was
finished: the next sweep into the same results tree takes in what is left here. Where a sweep has a
store of its own, workers put their files there and not into the client's hands.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import FleetError, StoreError
from harness.records.files import replaced
from harness.records.schema import Record, decode, decode_as, digest
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


def kept(owner: str, replicate: str) -> list[Record]:
    """Return what is kept for an owner of one process of a group."""
    lines = b"".join(contents(owner).values()).splitlines()
    found = [one for one in map(decode, lines) if isinstance(one, Record)]
    return [r for r in found if r.replicate == replicate and r.status in ("ok", "refused")]


def contents(owner: str) -> dict[str, bytes]:
    """Return the content of the files that are kept for an owner, by order."""
    found = {}
    with contextlib.suppress(OSError):
        for path in sorted((folder() / owner).glob("*.jsonl")):
            found[path.stem] = path.read_bytes()
    return found


def forget(owner: str, stored: Mapping[str, int]) -> None:
    """Remove what has been stored: order to the bytes that its file then had."""
    for order, size in stored.items():
        with contextlib.suppress(OSError):
            store(owner, order).remove(size)


def take_in(results: Path, contents: Iterable[bytes]) -> int:
    """Store what workers kept and a results tree lacks; return how many records that were.

    A tree lacks a record where it has no good one of its name: what was measured again since then
    is newer and stays, what was given up is not.

    Raises:
        StoreError: the results folder cannot take them; the workers still have them.
    """
    found: dict[Path, dict[tuple[str, str], Record]] = {}
    for line in (line for content in contents for line in content.splitlines()):
        record = decode(line)
        if isinstance(record, Record) and record.status == "ok":
            path = store_path(results, record.machine, record.commit, record.env, record.night)
            found.setdefault(path, {})[record.key, record.replicate] = record
    count = 0
    for path, records in found.items():
        good = {(r.key, r.replicate) for r in Store(path).read() if r.status == "ok"}
        new = [record for name, record in records.items() if name not in good]
        Store(path).append(new)
        count += len(new)
    return count


# A store of many clients and workers: a results tree with a file per order, at any URL of fsspec's.


def _files(url: str) -> tuple[Any, str]:
    """Return the file system of a store, and the path in it."""
    import fsspec  # of the extra `fleet`

    found: tuple[Any, str] = fsspec.url_to_fs(url)
    return found


def push(owner: str, order: str, url: str) -> None:
    """Put the file of an order into a store, as a whole or not at all, and forget it here.

    Raises:
        StoreError: the store cannot take it; it is still here.
    """
    own = store(owner, order)
    content = own.path.read_bytes()
    records = filter(lambda one: isinstance(one, Record), map(decode, content.splitlines()))
    first = next(records, None)
    if isinstance(first, Record):
        name = store_path(Path(), first.machine, first.commit, first.env, first.night)
        try:
            files, root = _files(url)
            # Never the name of an earlier part: what is being measured may have been put already.
            part = f"{order}-{os.urandom(4).hex()}"
            target = f"{root}/{name.with_suffix('')}.{part}.jsonl"
            if getattr(files, "local_file", False):
                with replaced(Path(target), "wb", "") as handle:
                    handle.write(content)
            else:
                files.pipe_file(target, content)
        except Exception as error:  # whatever a file system of somebody's raises
            raise StoreError(f"{url} cannot take records: {error}") from error
    own.remove(len(content))


def push_all(owner: str, url: str) -> str:
    """Put all that is kept for an owner into a store; return why that cannot be, or nothing."""
    try:
        for order in contents(owner):
            push(owner, order, url)
    except (StoreError, OSError, ImportError) as error:
        return str(error)
    return ""


class Stored(msgspec.Struct):
    """What a client has to know of a record that is in a store."""

    schema: int
    key: str
    replicate: str
    status: str
    code: dict[str, str] = msgspec.field(default_factory=dict)


_decoder = msgspec.json.Decoder(Stored)


def stored(url: str, name: Path) -> Iterator[Stored]:
    """Yield what a store has of a file of the results tree, an order's records at a time.

    Raises:
        FleetError: the store cannot be read.
    """
    try:
        files, root = _files(url)
        for path in files.glob(f"{root}/{name.with_suffix('')}.*.jsonl"):
            for line in files.cat_file(path).splitlines():
                found = decode_as(_decoder, line)
                if isinstance(found, Stored):
                    yield found
    except Exception as error:  # whatever a file system of somebody's raises
        raise FleetError(
            f"The store {url} cannot be read: {type(error).__name__}: {error}. Expected a folder "
            "or bucket that fsspec knows, such as /shared/records or s3://bucket/records."
        ) from error
