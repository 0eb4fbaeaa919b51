"""Fetch what workers have kept of earlier sweeps into the same results tree."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.records.schema import Record, decode
from harness.records.store import Store, store_path

if TYPE_CHECKING:
    from harness.fleet.pool import Pool


def corrected(record: Record, offset_ms: int) -> Record:
    """Return a record of a worker whose clock is so much ahead of this machine's."""
    if not offset_ms:
        return record
    return msgspec.structs.replace(record, started_at_ms=record.started_at_ms - offset_ms)


def collect(
    pool: Pool,
    owner: str,
    results: Path,
    workers: Collection[str],
    offsets_ms: Mapping[str, int],
) -> int:
    """Store the records that workers keep for `owner` and the tree lacks; return how many.

    A tree lacks a record where it has none of its name, or one that is not `ok` in place of one
    that is.

    `offsets_ms` says by how much the times of a worker's records are to be corrected.

    Raises:
        StoreError: the results folder cannot take them; the workers still have them.
    """
    fetched = pool.fetch(owner, workers)
    found: dict[Path, dict[tuple[str, str], Record]] = {}
    for worker, orders in fetched.items():
        for content in orders.values():
            for line in content.splitlines():
                record = decode(line)
                if isinstance(record, Record):
                    path = store_path(
                        results, record.machine, record.commit, record.env, record.night
                    )
                    record = corrected(record, offsets_ms.get(worker, 0))
                    kept = found.setdefault(path, {})
                    earlier = kept.get((record.key, record.replicate))
                    if earlier is None or record.status == "ok" or earlier.status != "ok":
                        kept[record.key, record.replicate] = record
    count = 0
    for path, records in found.items():
        store = Store(path)
        there = {(r.key, r.replicate): r.status for r in store.read()}
        # What was measured again since then is the newer one, and stays; what was given up
        # because its worker was lost is not.
        new = [
            record
            for name, record in records.items()
            if name not in there or (record.status == "ok" and there[name] != "ok")
        ]
        store.append(new)
        count += len(new)
    stored = {
        worker: {order: len(content) for order, content in orders.items()}
        for worker, orders in fetched.items()
    }
    pool.forget(owner, stored)
    return count
