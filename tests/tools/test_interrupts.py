"""A little of the campaign of interrupts: `python -m tools.interrupts` is all of it."""

from pathlib import Path

import pytest

from tools.interrupts import BAD, campaign

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc"),
    pytest.mark.usefixtures("fresh_processes"),
]


@pytest.mark.nightly
@pytest.mark.parametrize("command", ["show", "compare live"])
def test_a_command_that_is_interrupted_says_so_and_leaves_nothing(command):
    counts = campaign(3, 5, command)
    # How long it took is no matter of a test.
    assert {bad: counts[bad] for bad in BAD if bad != "slow" and counts[bad]} == {}
