"""Before a sweep measures, it says how long that took the last time on this machine."""

import shutil

import pytest

from harness.cli.progress import expected_text
from harness.measure.estimate import Expected
from harness.records.store import Store
from tests.sweeps import sweep, workload

Scale = workload("small", "Scale")


class Enough(Exception):
    pass


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Results of two processes, and what was expected of them."""
    results, messages = tmp_path_factory.mktemp("two"), []
    sweep([Scale], results, "2x1", on_progress=messages.append)
    (first,) = [one.expected for one in messages if one.expected]
    return results, first


def told(results, effort, **options):
    """Return what a sweep expects, which then measures nothing; None where nothing is left."""

    def on_progress(message):
        if message.expected:
            raise Enough(message.expected)

    try:
        sweep([Scale], results, effort, on_progress=on_progress, **options)
    except Enough as said:
        return said.args[0]


def test_the_second_time_is_expected_to_take_as_long_as_the_first(measured, tmp_path):
    results, first = measured
    assert (first.records > 0, first.known, first.seconds) == (True, 0, 0)
    again = told(results, "2x1", fresh=True)
    assert (again.records, again.known) == (first.records, first.records)
    (file,) = results.glob("*/records/*.jsonl")
    began = sorted({one.started_at_ms for one in Store(file).read()})
    assert len(began) == 2
    # The first process lasted until the second began, and each is expected to last as long.
    assert again.seconds == pytest.approx(2 * (began[1] - began[0]) / 1e3)
    assert told(tmp_path, "2x1").known == 0, "results of another folder are not looked at"


def test_what_is_there_already_takes_no_time(measured):
    assert told(measured[0], "2x1") is None
    more, whole = told(measured[0], "3x1"), told(measured[0], "3x1", fresh=True)
    assert 3 * more.records == whole.records


def test_damaged_records_tell_nothing_and_stop_nothing(measured, tmp_path):
    shutil.copytree(measured[0], tmp_path, dirs_exist_ok=True)
    (file,) = tmp_path.glob("*/records/*.jsonl")
    file.write_bytes(b'{"replicate": 3}\n\xff\xfe\n{}\n')
    assert told(tmp_path, "1x1").known == 0


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (Expected(48, 0, 0), "48 records to measure. No estimate yet: "),
        (Expected(48, 48, 184), "48 records to measure: about 3 min 4 s, as long as the last time"),
        (Expected(48, 40, 184), "about 3 min 4 s (8 estimated from similar cases)."),
        (Expected(1, 1, 3, is_least=True), "1 record to measure: at least 3.0 s, as long as"),
        (Expected(4, 4, 20).times(3), "12 records to measure: about 60 s, as long as"),
    ],
)
def test_it_is_said_in_one_sentence(expected, text):
    assert text in expected_text(expected)
