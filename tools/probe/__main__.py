"""Try the rows on an installation; see the package."""

import argparse
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from harness import __version__
from tools.probe import page
from tools.probe.bench import Bench, NotApplicable, Unmet
from tools.probe.rows import ROWS


def examine(row, bench):
    """Do one row's experiment."""
    began_s = time.monotonic()
    bench.runs = []
    try:
        passed, happened = row.experiment(bench)
        verdict = "pass" if passed else "fail"
    except Unmet as unmet:
        verdict, happened = "fail", str(unmet)
    except NotApplicable as reason:
        verdict, happened = "n/a", bench.scrub(str(reason))
    except OSError as error:  # one experiment that cannot be set up must not cost the others
        verdict, happened = "n/a", bench.scrub(f"the experiment could not be set up: {error}")
    return page.Finding(
        row=row.name,
        title=row.title,
        expectation=row.expectation,
        verdict=verdict,
        happened=happened,
        runs=tuple(bench.runs),
        seconds_s=round(time.monotonic() - began_s, 2),
    )


def probe(python, rows):
    """Run rows on an installation, in a scratch folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="harness-probe-") as scratch:
        bench = Bench(python, Path(scratch).resolve())
        findings = []
        for number, row in enumerate(rows, 1):
            finding = examine(row, bench)
            findings.append(finding)
            print(f"[{number}/{len(rows)}] {finding.verdict:4} {row.name}: {finding.happened}")
            if not bench.installation:
                sys.exit(f"{python} cannot run JAX on the CPU: {finding.happened}")
        system = f"{platform.system()} {platform.machine()}"
        return page.Report(
            installation=page.Installation(system=system, **bench.installation),
            date=datetime.now(UTC).date().isoformat(),
            findings=tuple(findings),
            harness=__version__,
        )


def main():
    """Probe, and write the page or say which rows differ from the committed results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="whose JAX; harness is not needed")
    parser.add_argument("--row", action="append", choices=list(ROWS), help="only this; repeat")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="needs all rows")
    asked = parser.parse_args()
    report = probe(asked.python, [ROWS[name] for name in asked.row or ROWS])
    if asked.write and not asked.row:
        folder = asked.write.parent / "probe-results"
        folder.mkdir(exist_ok=True)
        page.save(folder / f"{report.installation.jax}.json", report)
        asked.write.write_text(page.page(page.load(folder)), encoding="utf-8")
        return
    known = page.committed().get(report.installation.jax, {})
    differ = [
        f"{found.row}: {found.verdict}, and {known[found.row]} is committed"
        for found in report.findings
        if found.verdict not in ("n/a", known.get(found.row, found.verdict))
    ]
    sys.exit("\n".join(differ) or 0)


if __name__ == "__main__":
    main()
