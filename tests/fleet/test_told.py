"""Reports that are told beside Dask's results: used where nothing is missing, else fetched."""

from types import SimpleNamespace

import pytest

from harness.fleet.dask_pool import DaskPool
from harness.fleet.messages import RecordLine, Result, encode
from harness.fleet.pool import Lost


@pytest.fixture
def pool():
    return DaskPool(client=SimpleNamespace(scheduler=SimpleNamespace(address="tcp://a:1")))


class Future:
    """One of Dask's that is over; counts how often its result is fetched."""

    def __init__(self, report, status="finished"):
        self.status, self.fetched, self._report = status, 0, report

    def result(self):
        self.fetched += 1
        return encode(self._report)


def events(pool):
    found = []
    while not pool._events.empty():
        found.append(pool._events.get_nowait())
    return found


def tell(pool, said):
    pool._on_said((0.0, encode(said)))


def test_a_report_that_was_told_after_all_its_records_is_not_fetched(pool):
    records = [RecordLine("one", b"{}\n", index) for index in range(2)]
    for record in records:
        tell(pool, record)
    told = Result("one", [], timed_ns=5.0, spooled=6, told=2)
    tell(pool, told)
    future = Future(Result("one", records, timed_ns=5.0, spooled=6, told=2))
    pool._on_done("one", future)

    assert events(pool) == [*records, told]
    assert future.fetched == 0
    assert not pool._results
    assert not pool._heard


def test_a_report_is_fetched_where_a_record_did_not_come_or_nothing_was_told(pool):
    records = [RecordLine("one", b"{}\n", index) for index in range(2)]
    whole = Result("one", records, told=2)
    tell(pool, records[0])
    tell(pool, Result("one", [], told=2))
    future = Future(whole)
    pool._on_done("one", future)
    assert events(pool) == [records[0], whole]
    assert future.fetched == 1

    silent = Future(Result("two", [], refused="no"))
    pool._on_done("two", silent)
    assert [event.refused for event in events(pool)] == ["no"]


def test_what_was_told_of_an_assignment_that_was_lost_is_no_report(pool):
    tell(pool, Result("one", []))
    pool._on_done("one", Future(Result("one", []), status="cancelled"))

    assert [type(event) for event in events(pool)] == [Lost]
    assert not pool._results
