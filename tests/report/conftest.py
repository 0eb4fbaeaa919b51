"""The pages that the tests look at, and the browser that shows them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.frame.against import against_baseline
from harness.report.measured import Measured
from harness.report.page import render
from harness.report.results import report
from tests.report.synthetic import HOSTILE, cached, frame

RESULTS = Path(__file__).parents[2] / "results"
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
)
"""Chromium without a window, without a sandbox of its own, and asking nobody for anything."""


def reported(frame: pd.DataFrame, comparisons: pd.DataFrame, **links: Any) -> Any:
    """Return the report on a frame and comparisons."""
    return report(Measured(frame, comparisons), **links)


@pytest.fixture(scope="session")
def hostile_report():
    """A report in which every section is filled, and names try to break out of the page."""
    measured = [frame([*HOSTILE, "good.Work"], nights=6), cached("good.Cached")]
    against = against_baseline(RESULTS).iloc[:20].assign(workload=HOSTILE[0])
    whole = pd.concat(measured, ignore_index=True)
    return reported(whole, against, links=[("asv’s pages", "index.html")])


@pytest.fixture(scope="session")
def hostile_page(hostile_report) -> str:
    return render(hostile_report)


def start_browser(folder: Path) -> Any:
    """Return a headless Chromium with a fresh profile in `folder`; skips where there is none."""
    found = [shutil.which(n) for n in ("chromium", "chromium-browser", "google-chrome")]
    program = next(filter(None, found), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        lacking = "chromedriver" if program else "chromium"
        pytest.skip(f"{lacking} is not installed, and the page is looked at in a real browser")
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = program
    for flag in (*QUIET, f"--user-data-dir={folder}", "--window-size=1280,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # With the path of the driver given, selenium looks for none and downloads nothing.
    return selenium.Chrome(options=options, service=Service(executable_path=driver))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory) -> Iterator[Any]:
    browser = start_browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.quit()


def wait_until(browser: Any, expression: str, timeout_s: float = 60) -> Any:
    """Wait until a JavaScript expression is true in the page, and return its value."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        value = browser.execute_script(f"return {expression}")
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"still not true after {timeout_s} s: {expression}")
