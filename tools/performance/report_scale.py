"""How long a large report takes to build, how big it is, and how soon it is there and filtered.

    python -m tools.performance.report_scale [--cases 500] [--nights 30]

The rows are made up, 9 stages a case. The first figure is timed from the navigation's start, in
Chromium, and from the choice of a target or a case.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from harness.output.report.page import render
from harness.stages.registry import CASE_STAGES
from tests.output.report.pages import COMPLETE, reported, start_browser, wait_until
from tests.output.report.synthetic import CACHED, SIZES, frame
from tools.performance.command import options

CHOOSE = """
const field = document.forms[0].elements[arguments[0]];
field.value = field.options[field.options.length >> 1].value;
window.chosen = performance.now();
field.dispatchEvent(new Event("input", { bubbles: true }));
"""
ANSWERED = (
    "performance.getEntriesByName('figure').map(e => e.startTime - window.chosen).find(t => t > 0)"
)


def filtered_ms(browser: Any, name: str) -> float:
    """Return the time from the choice of a value to the first figure."""
    wait_until(browser, COMPLETE)
    browser.execute_script("scrollTo(0, document.getElementById('stages').offsetTop)")
    browser.execute_script(CHOOSE, name)
    return float(wait_until(browser, ANSWERED))


def main() -> None:
    given = options(__doc__, cases=500, nights=30)
    workloads = [f"family{n % 9}.Workload{n}" for n in range(given.cases // len(SIZES))]
    rows = frame(workloads, nights=given.nights, stages=(*CASE_STAGES, *CACHED))
    began = time.perf_counter()
    page = render(reported(rows)).encode()
    print(f"{len(rows)} rows: built in {time.perf_counter() - began:.1f} s, {len(page)} bytes")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "report.html")
        file.write_bytes(page)
        browser = start_browser(Path(folder, "profile"))
        try:
            for _ in range(3):
                browser.get(file.as_uri())
                # Marked by the page itself; polling from outside would add its own time.
                first = wait_until(browser, "performance.getEntriesByName('figure')[0]?.startTime")
                filtered = [filtered_ms(browser, name) for name in ("stage", "one_case")]
                print(
                    f"first figure after {first / 1000:.2f} s, of one stage after "
                    f"{filtered[0]:.0f} ms, of one case after {filtered[1]:.0f} ms"
                )
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
