"""Fleets that live as long as the tests of one file."""

import pytest

from harness.fleet import sweep
from tests.fleet.processes import Fleet


@pytest.fixture(autouse=True)
def usual(tmp_path, monkeypatch):
    """Locks of the test's own, because others may run on this machine; and nobody waits long."""
    monkeypatch.setenv("HARNESS_LOCKS", str(tmp_path))
    monkeypatch.setattr(sweep, "LOOK_S", 0.1)
    monkeypatch.setattr(sweep, "TICK_S", 0.05)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A scheduler without workers."""
    found = Fleet(tmp_path_factory.mktemp("fleet"))
    yield found
    found.close()
