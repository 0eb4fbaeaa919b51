"""A little of the campaign of damaged files: `python -m tests.damaged` is all of it."""

import contextlib

import pytest

from harness.errors import UsageError
from tests.damaged import formats
from tests.damaged.campaign import BAD, Bench, Case, campaign


def test_damaged_files_are_refused_or_say_what_was_written():
    said = []
    found = campaign(60, 14, workers=1, say=lambda text, **how: said.append(text))
    assert [counts[bad] for counts in found.values() for bad in BAD if counts[bad]] == [], said
    assert sorted(found) == sorted(one.name for one in formats.FORMATS)


@pytest.mark.filterwarnings("ignore")
def test_no_flipped_bit_goes_unnoticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bench = Bench(tmp_path)
    cases = [Case(number, 14, True) for number in range(60)]
    assert {case.format.name for case in cases} == {
        one.name for one in formats.FORMATS if one.checked
    }
    came = {case.number: bench.judge(case) for case in cases}
    assert {number: said for number, said in came.items() if said[1] in BAD} == {}


@pytest.mark.filterwarnings("ignore")
def test_a_pack_with_a_wrong_bit_is_refused_or_unpacked_as_it_was(tmp_path):
    (pack,) = (one for one in formats.FORMATS if one.name == "pack")
    path = pack.make(tmp_path)
    healthy, values = path.read_bytes(), pack.read(path)
    for place in range(0, 8 * len(healthy), 11):  # each bit of a byte in turn
        wrong = bytearray(healthy)
        wrong[place // 8] ^= 1 << place % 8
        path.write_bytes(wrong)
        with contextlib.suppress(UsageError):
            assert pack.read(path).items() <= values.items()
