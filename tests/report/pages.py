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
from axe_core_python.selenium import Axe

from harness.frame.against import against_baseline
from harness.report.measured import Measured
from harness.report.sweep import report

RESULTS = Path(__file__).parents[2] / "results"
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


def assert_loads_nothing(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert policy.startswith("default-src &#39;none&#39;")
    assert "unsafe-eval" not in policy
    assert "http" not in policy
    markup = without_scripts(page)
    assert not re.search(r"""(src|href|action)\s*=\s*["']?(https?:)?//""", markup)
    assert not re.search(r"@import|url\(", markup)
    assert not re.search(r"""<[^>]*\son\w+\s*=\s*["']""", markup)


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


def assert_no_window_scrolls_sideways(page: Any) -> None:
    for width in (320, 768):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        page.refresh()
        wait_until(page, COMPLETE)
        assert page.execute_script("return document.documentElement.scrollWidth") <= width


def assert_no_barrier(page: Any, *views: str) -> None:
    """Check views of a page for whoever does not see it or has no mouse, by axe-core's rules.

    Dark colours differ in contrast alone.
    """
    address = page.current_url
    page.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})  # what judges it is a script
    try:
        for view in views:
            for colours, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
                media = [{"name": "prefers-color-scheme", "value": colours}]
                page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
                if colours == "light":
                    page.get(address + view)
                wait_until(page, COMPLETE)
                page.execute_script(
                    "document.querySelectorAll('details').forEach(d => d.open = true)"
                )
                found = Axe().run(page, options=rules)
                wrong = [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]]
                assert wrong == [], (view, colours)
                assert len(found["passes"]) > (30 if colours == "light" else 0)
    finally:
        page.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})


def assert_controls_are_labelled_and_hidden_in_print(page: Any, selector: str) -> None:
    """Check the labels of all controls, and that what `selector` finds is not printed."""
    unlabelled = page.execute_script(
        "return [...document.querySelectorAll('input, select')].filter(e => !e.labels.length)"
    )
    assert unlabelled == []
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    shown = f"getComputedStyle(document.querySelector('{selector}')).display"
    assert page.execute_script(f"return {shown}") == "none"
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
