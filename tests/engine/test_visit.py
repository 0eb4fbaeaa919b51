"""The note of what a process is at."""

import tempfile

import pytest

from harness.engine.visit import SIZE, CurrentVisit, Visit


@pytest.fixture
def pair():
    """Two boards on one file, as two processes have them."""
    with tempfile.TemporaryFile() as shared:
        shared.truncate(SIZE)
        boards = CurrentVisit(shared.fileno()), CurrentVisit(shared.fileno())
    yield boards
    for board in boards:
        board.close()


def test_nothing_is_noted_at_first(pair):
    assert pair[1].read() is None


@pytest.mark.parametrize(
    "visit", [Visit("0f" * 8, 0, "trace"), Visit("reference", 2, "execute"), Visit("k", 1, "")]
)
def test_what_one_process_notes_the_other_reads(pair, visit):
    pair[0].write(Visit("3", 3, "something longer"))
    pair[0].write(visit)
    pair[0].close()  # a note outlives the one who wrote it
    assert pair[1].read() == visit
