"""A little of the campaign of kills: `python -m tests.kills` is all of it."""

from pathlib import Path

import pytest

from tests.kills import campaign


# What a sweep that is killed leaves is also held by tests/engine and tests/asv.
@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_no_finished_record_is_lost_and_nothing_is_left_after_the_next_run():
    counts = campaign(3, minutes=3, seed=2, longest_s=2.0, only="run from a snapshot")
    assert counts["wrong"] == 0
    assert counts["looks after the next command"] == 1
    assert counts["bytes of records held against"] > 0
