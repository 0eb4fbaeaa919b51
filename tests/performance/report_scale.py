"""How long a large report takes to build, how big it is, and when its first figure is there.

    python -m tests.performance.report_scale [--cases 500] [--nights 30]

The rows are made up, 8 stages a case. The figure is timed from the navigation's start, in Chromium.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from harness.report.page import render
from harness.stages.registry import CASE_STAGES
from tests.performance.command import options
from tests.report.pages import reported, start_browser, wait_until
from tests.report.synthetic import CACHED, SIZES, frame


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
                print(f"first figure after {first / 1000:.2f} s")
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
