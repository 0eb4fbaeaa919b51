"""What workers have kept goes into the tree, if it has nothing as good."""

import pytest

from harness.fleet import collection
from harness.records.schema import encode
from harness.records.store import Store, store_path
from tests.frame.trees import COMMIT, ENV, record


class Keeping:
    """A pool of one worker, which keeps these records of one order."""

    def __init__(self, *orders):
        self.orders = {
            f"order-{number}": b"".join(encode(one) + b"\n" for one in order)
            for number, order in enumerate(orders)
        }
        self.forgotten = {}

    def fetch(self, owner, workers):
        return {"w": self.orders}

    def forget(self, owner, stored):
        self.forgotten = stored


def collect(pool, results, **offsets):
    return collection.collect(pool, "owner", results, ["w"], offsets)


@pytest.fixture
def there(tmp_path):
    """The file in which a tree has the records of the machine."""
    return Store(store_path(tmp_path, "box", COMMIT, ENV))


def test_what_a_worker_finished_counts_more_than_that_it_was_given_up(there, tmp_path):
    given_up = record(0, {}, status="failed", reason="given up after 3 attempts")
    there.append([given_up, record(1, {"trace": [5e6]})])
    pool = Keeping([record(0), record(1), record(2)])

    assert collect(pool, tmp_path) == 2
    found = {one.replicate: one for one in there.read()}
    assert [one.status for one in found.values()] == ["ok"] * 3
    # What was measured again since then is the newer one.
    assert found["family.Work@cpu#1"].stages["trace"].samples_ns == [5e6]
    assert pool.forgotten == {"w": {"order-0": len(pool.orders["order-0"])}}
    assert collect(pool, tmp_path) == 0


def test_of_two_attempts_that_are_kept_the_one_that_went_well_counts(there, tmp_path):
    failed = record(0, {}, status="failed", reason="killed")
    assert collect(Keeping([record(0)], [failed]), tmp_path) == 1
    assert [one.status for one in there.read()] == ["ok"]


def test_a_failure_that_is_kept_replaces_nothing(there, tmp_path):
    there.append([record(0)])
    failed = record(0, {}, status="failed", reason="killed")
    assert collect(Keeping([failed]), tmp_path) == 0
    assert [one.status for one in there.read()] == ["ok"]
