"""The pages that the tests look at, and the browser that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest

from harness.frame.against import against_baseline
from harness.output.report.page import render
from harness.output.report.profile.page import profile_report
from tests.output.report.pages import COMPLETE, RESULTS, reported, start_browser, wait_until
from tests.output.report.synthetic import HOSTILE, cached, frame
from tests.profiles import synthetic


@pytest.fixture(scope="session")
def comparisons():
    """What was compared in the committed results."""
    return against_baseline(RESULTS)


@pytest.fixture(scope="session")
def hostile_report(comparisons):
    """A report in which every section is filled, and names try to break out of the page."""
    measured = [frame([*HOSTILE, "good.Work"], nights=6), cached("good.Cached")]
    against = comparisons.iloc[:20].assign(workload=HOSTILE[0])
    whole = pd.concat(measured, ignore_index=True)
    return reported(whole, against, links=[("asv’s pages", "index.html")])


@pytest.fixture(scope="session")
def hostile_page(hostile_report) -> str:
    return render(hostile_report)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory) -> Iterator[Any]:
    browser = start_browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def hostile_profile():
    """The same of a profile."""
    return profile_report(synthetic.profile())


@pytest.fixture(scope="session")
def hostile_profile_page(hostile_profile) -> str:
    return render(hostile_profile)


@pytest.fixture
def show(chromium, tmp_path) -> Iterator[Callable[[str], Any]]:
    """Return what loads a page into the browser anew; nothing in it may fail."""

    def shown(page: str) -> Any:
        file = tmp_path / "report.html"
        file.write_text(page, encoding="utf-8")
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        # A page that still scrolls is no place to press on.
        still = [{"name": "prefers-reduced-motion", "value": "reduce"}]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": still})
        chromium.get_log("browser")
        chromium.get(file.as_uri())
        wait_until(chromium, COMPLETE)
        return chromium

    yield shown
    # Vega-Lite warns of a height that follows the number of rows, which is meant.
    said = chromium.get_log("browser")
    assert [entry for entry in said if entry["level"] == "SEVERE"] == []


@pytest.fixture
def page(show, hostile_page) -> Any:
    return show(hostile_page)


@pytest.fixture
def profile_page(show, hostile_profile_page) -> Any:
    return show(hostile_profile_page)


@pytest.fixture(params=["page", "profile_page"])
def either(request) -> Any:
    """The page of results, or that of a profile."""
    return request.getfixturevalue(request.param)
