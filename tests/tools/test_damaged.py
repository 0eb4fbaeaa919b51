"""A little of the campaign of damaged files: `python -m tools.damaged` is all of it."""

import contextlib

import pytest

from harness.cache.pack import PackError
from tests.damaged import formats
from tools.damaged.campaign import BAD, campaign


@pytest.mark.parametrize("flips", [True, False])
def test_damaged_files_are_refused_or_say_what_was_written(flips):
    said = []
    found = campaign(60, 14, flips, workers=1, say=lambda text, **how: said.append(text))
    assert [counts[bad] for counts in found.values() for bad in BAD if counts[bad]] == [], said
    known = [one.name for one in formats.FORMATS if one.checked or not flips]
    assert sorted(found) == sorted(known)


@pytest.mark.filterwarnings("ignore")
def test_a_pack_with_a_wrong_bit_is_refused_or_unpacked_as_it_was(tmp_path):
    (pack,) = (one for one in formats.FORMATS if one.name == "pack")
    path = pack.make(tmp_path)
    healthy, values = path.read_bytes(), pack.read(path)
    for place in range(0, 8 * len(healthy), 11):  # each bit of a byte in turn
        wrong = bytearray(healthy)
        wrong[place // 8] ^= 1 << place % 8
        path.write_bytes(wrong)
        with contextlib.suppress(PackError):
            assert pack.read(path).items() <= values.items()
