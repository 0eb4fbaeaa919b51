"""Before a sweep measures, it says how long that took the last time on this machine."""

import time
from pathlib import Path

import pytest

from harness.cli.progress import expected_text
from harness.engine.estimate import Expected
from harness.stages.sampling import effort
from tests.sweeps import sweep, workload

Scale = workload("small", "Scale")


def told(results: Path, **options) -> list[Expected]:
    messages = []
    sweep([Scale], results, on_progress=messages.append, **options)
    return [one.expected for one in messages if one.expected]


def test_the_second_time_is_expected_to_take_as_long_as_the_first(tmp_path):
    began_s = time.monotonic()
    (first,) = told(tmp_path, effort=effort("2x1"))
    took_s = time.monotonic() - began_s
    assert (first.records > 0, first.known, first.seconds) == (True, 0, 0)
    (again,) = told(tmp_path, effort=effort("2x1"), fresh=True)
    assert (again.records, again.known) == (first.records, first.records)
    assert took_s / 6 < again.seconds < took_s, (again, took_s)
    (elsewhere,) = told(tmp_path / "none", effort=effort("2x1"))
    assert elsewhere.known == 0, "results of another folder are not looked at"


def test_what_is_there_already_takes_no_time(tmp_path):
    told(tmp_path, effort=effort("1x1"))
    assert told(tmp_path, effort=effort("1x1")) == []
    (more,) = told(tmp_path, effort=effort("2x1"))
    (whole,) = told(tmp_path, effort=effort("2x1"), fresh=True)
    assert 2 * more.records == whole.records


def test_damaged_records_tell_nothing_and_stop_nothing(tmp_path):
    told(tmp_path, effort=effort("1x1"))
    (file,) = tmp_path.glob("*/records/*.jsonl")
    file.write_bytes(b'{"replicate": 3}\n\xff\xfe\n{}\n')
    (again,) = told(tmp_path, effort=effort("1x1"))
    assert again.known == 0


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (Expected(48, 0, 0), "48 records to measure, none like them on this machine yet: "),
        (Expected(48, 48, 184), "48 records to measure: about 3 min 4 s, as long as the last time"),
        (Expected(48, 40, 184), "about 3 min 4 s, if the 8 new ones take as others do."),
        (Expected(1, 1, 3, is_least=True), "1 record to measure: at least 3.0 s, as long as"),
        (Expected(4, 4, 20).times(3), "12 records to measure: about 60 s, as long as"),
    ],
)
def test_it_is_said_in_one_sentence(expected, text):
    assert text in expected_text(expected)
