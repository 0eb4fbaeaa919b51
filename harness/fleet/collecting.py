"""Fetch what workers have kept of earlier sweeps into the same results tree."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from harness.fleet.pool import Pool
from harness.records import Record, decode
from harness.store import Store, store_path


def collect(pool: Pool, owner: str, results: Path, workers: Collection[str]) -> int:
    """Store the records that workers keep for `owner` and the tree lacks; return how many.

    Raises:
        StoreError: the results folder cannot take them; the workers still have them.
    """
    fetched = pool.fetch(owner, workers)
    found: dict[Path, dict[tuple[str, str], Record]] = {}
    for orders in fetched.values():
        for content in orders.values():
            for line in content.splitlines():
                record = decode(line)
                if isinstance(record, Record):
                    path = store_path(
                        results, record.machine, record.commit, record.env, record.night
                    )
                    found.setdefault(path, {})[record.key, record.replicate] = record
    count = 0
    for path, records in found.items():
        store = Store(path)
        there = {(r.key, r.replicate) for r in store.read()}
        # What was measured again since then is the newer one, and stays.
        new = [record for name, record in records.items() if name not in there]
        store.append(new)
        count += len(new)
    stored = {
        worker: {order: len(content) for order, content in orders.items()}
        for worker, orders in fetched.items()
    }
    pool.forget(owner, stored)
    return count
