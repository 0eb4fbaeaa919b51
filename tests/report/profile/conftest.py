"""The page that the tests look at."""

from __future__ import annotations

import pytest

from harness.report.page import render
from harness.report.profile.page import profile_report
from tests.profiles import synthetic


@pytest.fixture(scope="session")
def hostile_report():
    return profile_report(synthetic.profile())


@pytest.fixture(scope="session")
def hostile_page(hostile_report) -> str:
    return render(hostile_report)
