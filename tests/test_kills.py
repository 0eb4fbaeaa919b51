"""A little of the campaign of kills: `python -m tests.kills` is all of it."""

from pathlib import Path

import pytest

from tests.kills import KILLS_A_LOOK, campaign

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


def test_no_finished_record_is_lost_and_nothing_is_left_after_the_next_run():
    counts = campaign(KILLS_A_LOOK, minutes=3, seed=10, only="run from a snapshot")
    assert counts["wrong"] == 0
    assert counts["looks after the next command"] == 1
    assert counts["bytes of records held against"] > 0
