"""What the tests of reports share: reports on made-up rows, what is in a page, and a browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.frame.against import against_baseline
from harness.output.report.measured import Measured
from harness.output.report.sweep import report

RESULTS = Path(__file__).parents[3] / "docs" / "example-results"
NOTHING = against_baseline([])
COMPLETE = "document.documentElement.dataset.complete === 'yes'"
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
)
"""Chromium without a window, without a sandbox of its own, and asking nobody for anything."""


def reported(frame: pd.DataFrame, comparisons: pd.DataFrame = NOTHING, **links: Any) -> Any:
    """Return the report on a frame and comparisons."""
    return report(Measured(frame, comparisons), **links)


def section(report: Any, name: str) -> Any:
    """Return a section of a report, None where it is left out."""
    return next((one for one in report.sections if one.name == name), None)


def table(report: Any, name: str) -> Any:
    """Return a table of a report."""
    return next(t for part in report.sections for t in part.tables if t.name == name)


def answers(report: Any) -> dict[str, tuple[str, ...]]:
    """Return what the top of a report says, by question."""
    return {question: lines for question, lines, _ in report.answers}


def without_scripts(page: str) -> str:
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def embedded(page: str) -> Any:
    """Return the data of a page."""
    data = re.search(r'<script type="application/gzip" id="data">(.*?)</script>', page)
    assert data is not None
    return json.loads(gzip.decompress(base64.b64decode(data.group(1))))


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
    browser = selenium.Chrome(options=options, service=Service(executable_path=driver))
    browser.set_script_timeout(120)  # for axe-core on a machine that is loaded
    return browser


def wait_until(browser: Any, expression: str, timeout_s: float = 60) -> Any:
    """Wait until a JavaScript expression is true in the page, and return its value."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        value = browser.execute_script(f"return {expression}")
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"still not true after {timeout_s} s: {expression}")


def texts(page: Any, selector: str) -> list[str]:
    return page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector
    )


def marks(page: Any) -> dict[str, int]:
    """Return how many marks each figure has."""
    return page.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('[data-figure]')].map(f =>"
        " [f.dataset.figure, f.querySelectorAll('.chart svg .role-mark path').length]))"
    )


def choose(page: Any, selector: str, value: str) -> None:
    """Choose a value in a field, as a reader does."""
    page.execute_script(
        "const field = document.querySelector(arguments[0]); field.value = arguments[1];"
        "for (const type of ['input', 'change'])"
        " field.dispatchEvent(new Event(type, {bubbles: true}))",
        *(selector, value),
    )


def emulate(page: Any, media: str = "", **features: str) -> None:
    """Have a medium, and what a reader prefers; dashes are underscores."""
    wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": wanted})
