"""`harness cache report`: what the cache did over runs and hosts, what the newest lost, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from click.exceptions import Exit

from harness.cache import report as reports
from harness.cache.report import CacheReport, LedgerRun
from harness.cli import options
from harness.cli.cache.ledger import rate_by_seconds
from harness.cli.options import Argument, Option
from harness.cli.output import Heading, Output, Part, TextTable, notes
from harness.errors import ExitCode, UsageError
from harness.frame.frame import rows_of
from harness.records.printable import printable
from harness.records.units import counted, scaled_text, seconds_text, some
from harness.watch.ledger_events import SETTINGS

SHOWN = 15
"""So many modules, runs and causes are shown."""


@options.command(
    ledgers=Argument(metavar="LEDGER...", help="A run each."),
    fail_under=Option(
        metavar="PERCENT", min=0, max=100, help="The hit rate by seconds that is expected."
    ),
)
def report(*, ledgers: list[Path], fail_under: float | None = None, output: Output) -> None:
    r"""Report the newest of several runs: what it lost, where and why, beside the last good one.

    \b
      harness cache report monday.jsonl tuesday.jsonl
      harness cache report runs/* --format markdown -o cache.md
      harness cache report runs/* --fail-under 90

    \b
    Each LEDGER is a run: a file, or a folder with a file per process. The last good run is found by
    itself: the last earlier one that compiled for fewer seconds. A whole cluster's job writes one
    with two variables, which `harness cache ledger --variables FOLDER` prints.
    Exit codes: 0; 1 the rate by seconds is surely below --fail-under; 2 wrong usage; 4 no request.
    """
    if len(set(ledgers)) < len(ledgers):
        twice = next(path for path in ledgers if ledgers.count(path) > 1)
        raise UsageError(f"The ledger {twice} was given twice: each is a run of its own.")
    found = reports.report(ledgers)
    if found is None:
        notes.print("No compile request is in any of these ledgers.", markup=False)
        raise Exit(ExitCode.NOTHING)
    low, high = found.rate_bounds
    parts = list(_page(found))
    if fail_under is not None:
        parts.append(_judged(low, high, fail_under))
    output.show(parts, found.modules, _document(found))
    if fail_under is not None and 100 * high < fail_under:
        raise Exit(ExitCode.WORSE)


def _judged(low: float, high: float, wanted: float) -> str:
    if 100 * high < wanted:
        return f"FAILED: the hit rate by seconds is at most {high:.1%}, below {wanted:g} %."
    if 100 * low >= wanted:
        return f"The hit rate by seconds is at least {low:.1%}: not below {wanted:g} %."
    return (
        f"The hit rate by seconds is between {low:.1%} and {high:.1%}: nobody knows whether it is "
        f"below {wanted:g} %. Add the ledger of the run that compiled what was hit."
    )


def _page(found: CacheReport) -> Iterator[Part]:
    summary = found.newest.summary
    yield Heading(_answer(found))
    saved = f"{seconds_text(summary.saved_s)} saved"
    if unknown := summary.hits_without_cold:
        saved += f", and what {counted(unknown, 'hit')} saved is unknown"
    yield f"hit rate by seconds: {rate_by_seconds(summary)}; {saved}"
    for text, modules in found.causes[:SHOWN]:
        yield f"  {some(modules, 3)}: {text}"
    if (more := len(found.causes) - SHOWN) > 0:
        yield f"  … and {more} more causes; --format json gives all."
    yield _modules(found.modules[:SHOWN])
    if len(found.modules) > SHOWN:
        yield f"… and {len(found.modules) - SHOWN} more modules; --format json and csv give all."
    told = dict.fromkeys(
        why for all_of in found.modules["why"][:SHOWN] for why in all_of.split("; ")
    )
    yield from (f"{why}: {SETTINGS[why]} decides it." for why in told if why in SETTINGS)
    if len(found.runs) > 1:
        yield _runs(found.runs[-SHOWN:])
    yield _hosts(found.hosts)
    yield from map(str, found.sub_caches)


def _answer(found: CacheReport) -> str:
    summary = found.newest.summary
    said = (
        f"{printable(found.newest.name)}: {summary.hits} of {summary.requests} compiles were hits, "
        f"{seconds_text(summary.compile_s)} went into the others."
    )
    if found.good is not None:
        spent = seconds_text(found.good.summary.compile_s)
        said += f" {printable(found.good.name)}, the last good run, spent {spent}."
    return said


def _modules(modules: pd.DataFrame) -> TextTable:
    rows = {
        "module": modules["module"].map(printable),
        "hits": _hits(modules),
        "compiled": modules["lost_s"].map(seconds_text),
        "saved": _known(modules["saved_s"], seconds_text, "unknown"),
        "compiled, all runs": modules["all_lost_s"].map(seconds_text),
        "why no entry is left": modules["why"],
    }
    last = "why no entry is left"
    return TextTable(pd.DataFrame(rows), left=(last,), wrapped=("module", last))


def _runs(runs: Sequence[LedgerRun]) -> TextTable:
    rows = [
        {
            "run": printable(run.name),
            "ended (UTC)": f"{datetime.fromtimestamp(run.ended_at_s, UTC):%Y-%m-%d %H:%M}",
            "jax": ", ".join(run.releases),
            "hits": f"{run.summary.hits} of {run.summary.requests}",
            "compiled": seconds_text(run.summary.compile_s),
            "saved": seconds_text(run.summary.saved_s),
        }
        for run in runs
    ]
    return TextTable(pd.DataFrame(rows), left=("ended (UTC)", "jax"))


def _hosts(hosts: pd.DataFrame) -> TextTable:
    rows = {
        "host": hosts["host"].map(printable),
        "processes": hosts["processes"].map(str),
        "hits": _hits(hosts),
        "compiled": hosts["compile_s"].map(seconds_text),
        "load, median": _known(hosts["load_s"], seconds_text),
        "load, 90 %": _known(hosts["load_90_s"], seconds_text),
        "loaded": _known(hosts["bytes_per_s"], lambda value: scaled_text(value, "B/s")),
        "lock": hosts["lock_wait_s"].map(seconds_text),
    }
    return TextTable(pd.DataFrame(rows))


def _hits(rows: pd.DataFrame) -> pd.Series[str]:
    return rows["hits"].map(str) + " of " + rows["requests"].map(str)


def _known(values: pd.Series[float], text: Callable[[float], str], unknown: str = "") -> list[str]:
    return [text(value) if math.isfinite(value) else unknown for value in values]


def _document(found: CacheReport) -> dict[str, Any]:
    def run(one: LedgerRun) -> dict[str, Any]:
        names = ("requests", "hits", "compile_s", "saved_s", "hits_without_cold")
        sums = {name: getattr(one.summary, name) for name in names}
        return {"ledger": one.name, "ended_at": one.ended_at_s, "jax": one.releases, **sums}

    return {
        "schema": 1,
        "newest": run(found.newest),
        "good": None if found.good is None else run(found.good),
        "hit_rate_by_seconds": found.rate_bounds,
        "causes": [{"verdict": text, "modules": modules} for text, modules in found.causes],
        "modules": rows_of(found.modules),
        "hosts": rows_of(found.hosts),
        "runs": [run(one) for one in found.runs],
        "sub_caches": found.sub_caches,
    }
