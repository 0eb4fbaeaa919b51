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
    assert pair[1].read() == visit


def test_a_note_outlives_the_one_who_wrote_it():
    with tempfile.TemporaryFile() as shared:
        shared.truncate(SIZE)
        writer, reader = CurrentVisit(shared.fileno()), CurrentVisit(shared.fileno())
        writer.write(Visit("1", 0, "compile"))
        writer.close()
        assert reader.read() == Visit("1", 0, "compile")
        reader.close()
