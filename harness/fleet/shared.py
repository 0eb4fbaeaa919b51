"""A store that workers put records into, and not into the client's hands.

It is a results tree with a file per order, at any address of fsspec's: a folder that all see, or a
bucket.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.errors import FleetError, StoreError
from harness.records.files import replaced
from harness.records.schema import Record, decode, encode
from harness.records.store import store_path


def _files(url: str) -> tuple[Any, str]:
    import fsspec  # of the extra `fleet`

    found: tuple[Any, str] = fsspec.url_to_fs(url)
    return found


def _refusal(url: str, error: Exception) -> StoreError:
    return StoreError(f"{url} cannot take records: {error}")


def trouble(url: str) -> str:
    """Return why records cannot be put into a store from here, or nothing."""
    try:
        files, root = _files(url)
        files.makedirs(root, exist_ok=True)
    except Exception as error:  # whatever a file system of somebody's raises
        return str(_refusal(url, error))
    return ""


def put(url: str, records: Sequence[Record]) -> None:
    """Put records of one commit and environment into a store, as a whole or not at all.

    Raises:
        StoreError: the store cannot take them.
    """
    first, content = records[0], b"".join(map(encode, records))
    name = store_path(Path(), first.machine, first.commit, first.env, first.night)
    try:
        files, root = _files(url)
        target = f"{root}/{name.with_suffix('')}.{os.urandom(10).hex()}.jsonl"
        if getattr(files, "local_file", False):
            with replaced(Path(target), "wb", "", own=True) as handle:
                handle.write(content)
        else:
            files.pipe_file(target, content)
    except Exception as error:  # whatever a file system of somebody's raises
        raise _refusal(url, error) from error


def stored(url: str, name: Path) -> Iterator[Record]:
    """Yield what a store has of a file of the results tree, an order's records at a time.

    Raises:
        FleetError: the store cannot be read.
    """
    try:
        files, root = _files(url)
        for path in files.glob(f"{root}/{name.with_suffix('')}.*.jsonl"):
            for line in files.cat_file(path).splitlines():
                found = decode(line)
                if isinstance(found, Record):
                    yield found
    except Exception as error:  # whatever a file system of somebody's raises
        raise FleetError(
            f"The store {url} cannot be read: {type(error).__name__}: {error}. Expected a folder "
            "or bucket that fsspec knows, such as /shared/records or s3://bucket/records."
        ) from error
