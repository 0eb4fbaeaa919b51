"""A sweep may be killed at any moment."""

from tests.engine.kills import campaign


def test_no_finished_record_is_lost_and_the_sweep_can_be_completed():
    # Four rounds here; `python -m tests.engine.kills --rounds 50` is the long form.
    counts = campaign(rounds=4, seed=10, effort="8x1", longest_s=1.5)
    assert counts["rows in the final frame"] == 12
