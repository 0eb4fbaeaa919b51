"""What `harness cache ledger` shows: a program that was run, or runs and hosts of ledgers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from harness.cache.runs import LedgerRun, Runs
from harness.cache.saved import cache_settings
from harness.cli.output import Heading, Part, TextTable
from harness.frame.frame import rows_of
from harness.output import ledger
from harness.output.cache import problem_lines, setting_text
from harness.output.explain import verdict
from harness.records.printable import printable
from harness.records.units import scaled_text, seconds_text, some

SHOWN = 15
"""So many modules, runs and causes are shown."""


def page(runs: Runs) -> Iterator[Part]:
    """Yield the parts of the page."""
    summary = runs.newest.summary
    yield Heading(ledger.answer(runs))
    yield from ledger.rate_lines(summary)
    yield from problem_lines(summary)
    yield from map(setting_text, cache_settings(runs.newest.requests.events))
    for why, modules in runs.causes[:SHOWN]:
        yield f"  {some(modules, 3)}: {verdict(why)}"
    if (more := len(runs.causes) - SHOWN) > 0:
        yield f"  … and {more} more causes; --format json gives all."
    yield _modules(runs.modules[:SHOWN])
    if len(runs.modules) > SHOWN:
        yield f"… and {len(runs.modules) - SHOWN} more modules; --format json and csv give all."
    if len(runs.all) > 1:
        yield _runs(runs.all[-SHOWN:])
    yield _hosts(runs.hosts)
    yield from map(str, runs.sub_caches)
    yield f"Recording took {seconds_text(summary.own_s)}."


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
    return TextTable(pd.DataFrame(rows), left=(last,), cut=("module", last))


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


def document(runs: Runs) -> dict[str, Any]:
    """Return all of it for JSON."""

    def run(one: LedgerRun) -> dict[str, Any]:
        names = ("requests", "hits", "compile_s", "saved_s", "hits_without_cold")
        sums = {name: getattr(one.summary, name) for name in names}
        return {"ledger": one.name, "ended_at": one.ended_at_s, "jax": one.releases, **sums}

    return {
        "schema": 1,
        "newest": run(runs.newest),
        "good": None if runs.good is None else run(runs.good),
        "hit_rate_by_seconds": runs.rate_bounds,
        "settings": cache_settings(runs.newest.requests.events),
        "causes": [{"why": why, "modules": modules} for why, modules in runs.causes],
        "modules": rows_of(runs.modules),
        "hosts": rows_of(runs.hosts),
        "runs": [run(one) for one in runs.all],
        "sub_caches": runs.sub_caches,
    }
