"""All rows in order, and running them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from harness import __version__
from harness.cache.probe import damage, identity, limits, sharing
from harness.cache.probe.findings import Finding, NotApplicable, Report, Unmet, Verdict
from harness.cache.probe.judging import Row
from harness.cache.probe.runner import Bench, identify
from harness.errors import UsageError

ROWS: tuple[Row, ...] = (*identity.ROWS, *sharing.ROWS, *damage.ROWS, *limits.ROWS)


def choose(names: Sequence[str]) -> tuple[Row, ...]:
    """The rows of these names, in the table's order; all of them without any.

    Raises:
        UsageError: There is no such row.
    """
    known = {row.name: row for row in ROWS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(
            f"There is no row {unknown[0]!r}. Expected one of: {', '.join(known)}. Repeat --row "
            "for several, leave it out for all."
        )
    return tuple(row for row in ROWS if not names or row.name in names)


def examine(row: Row, bench: Bench) -> Finding:
    """Do one row's experiment."""
    began_s = time.monotonic()
    bench.runs = []
    verdict: Verdict
    try:
        outcome = row.experiment(bench)
        verdict, happened = ("pass" if outcome.passed else "fail"), outcome.happened
    except Unmet as unmet:
        verdict, happened = "fail", str(unmet)
    except NotApplicable as reason:
        verdict, happened = "n/a", bench.scrub(str(reason))
    except OSError as error:  # one experiment that cannot be set up must not cost the others
        verdict, happened = "n/a", bench.scrub(f"the experiment could not be set up: {error}")
    return Finding(
        row=row.name,
        title=row.title,
        expectation=row.expectation,
        verdict=verdict,
        happened=happened,
        runs=tuple(bench.runs),
        seconds_s=round(time.monotonic() - began_s, 2),
    )


def probe(
    python: str,
    rows: Sequence[Row] = ROWS,
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> Report:
    """Run rows on an installation, in a scratch folder that is removed afterwards.

    Args:
        python: The interpreter whose JAX is probed; `harness` need not be installed there.
        rows: What to run.
        on_finding: Told of each row when it is done.

    Raises:
        ProbeError: The interpreter cannot run JAX.
    """
    installation = identify(python)
    findings = []
    with tempfile.TemporaryDirectory(prefix="harness-probe-") as scratch:
        bench = Bench(python, Path(scratch).resolve())
        for row in rows:
            finding = examine(row, bench)
            findings.append(finding)
            on_finding(finding)
    return Report(
        installation=installation,
        date=datetime.now(UTC).date().isoformat(),
        findings=tuple(findings),
        harness=__version__,
    )
