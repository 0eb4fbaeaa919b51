"""Fleets that live as long as the tests of one file."""

import pytest

from tests.fleet.processes import Fleet


@pytest.fixture(autouse=True)
def locks(tmp_path, monkeypatch):
    """Locks of the test's own: other tests may run on this machine."""
    monkeypatch.setenv("HARNESS_LOCKS", str(tmp_path))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A scheduler without workers."""
    found = Fleet(tmp_path_factory.mktemp("fleet"))
    yield found
    found.close()
