"""Each small program is found to build what it says, for the reason that it says."""

from __future__ import annotations

import sys

import pytest

from tests import forks


@pytest.mark.nightly
def test_the_named_cause_is_right_in_all_programs():
    done = forks.run([sys.executable, "-m", "tools.profile_causes"], cwd=forks.ROOT, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
