"""Jobs and messages are plain data."""

import tempfile

import msgspec
import pytest

from harness.declare.location import Source, locate
from harness.engine import job
from harness.engine.job import SIZE, Bye, CurrentVisit, Fatal, Hello, Job, JobCase, Visit
from tests.sweeps import workload


def test_a_job_is_plain_data_that_survives_the_way():
    sent = Job(
        source=Source("module", "Class", "/a/file.py"),
        target="cpu",
        platforms="cpu",
        cpu_devices=2,
        cases=[JobCase(0, "größe=4, target='cpu'", "0123")],
        passes=3,
        seed=7,
        base={"machine": "μ", "commit_date_ms": None},
    )
    line = job.encode(sent)
    assert b"\n" not in line
    assert job.decode_job(line) == sent


@pytest.mark.parametrize(
    "message",
    [
        Fatal("no device:\nnone"),
        Bye(1.5, 2.5),
        Hello(msgspec.Raw(b'{"python":"3.12"}'), [0.1, 0.2, 0.3]),
    ],
)
def test_a_message_is_one_line_and_keeps_its_kind(message):
    line = job.encode(message)
    assert b"\n" not in line
    assert job.decode_message(line) == message


def test_a_class_that_was_sent_is_the_one_that_was_meant():
    class Typed(workload("small", "Scale")):
        pass

    sent = Job(
        source=locate(Typed), target="cpu", platforms="cpu", cases=[], base={"version": "another"}
    )
    assert sent.workload().__name__ == "Typed"


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
