"""A little of the campaign of damaged files: `python -m tools.damaged` is all of it."""

import pytest

from tests.damaged import formats
from tools.damaged.campaign import BAD, campaign


@pytest.mark.parametrize("flips", [True, False])
def test_damaged_files_are_refused_or_say_what_was_written(flips):
    said = []
    found = campaign(60, 14, flips, workers=1, say=lambda text, **how: said.append(text))
    assert [counts[bad] for counts in found.values() for bad in BAD if counts[bad]] == [], said
    known = [one.name for one in formats.FORMATS if one.checked or not flips]
    assert sorted(found) == sorted(known)
