from __future__ import annotations

from harness.records.store import Store
from tests.frame.trees import record


def test_what_was_appended_since_is_read_alone(tmp_path):
    store = Store(tmp_path / "records.jsonl")
    _, end = store.append([record(0)])
    store.append([record(1)])
    new, there = store.read_from(end)
    assert [one.replicate for one in new] == [record(1).replicate]
    assert there == store.size()
    assert store.read_from(there) == ([], there)
