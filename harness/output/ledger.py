"""What `harness cache ledger` shows: a program that was run, or runs and hosts of ledgers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from harness.cache.ledger import Summary
from harness.cache.runs import LedgerRun, Runs
from harness.cache.saved import cache_settings
from harness.frame.frame import rows_of
from harness.output.cache import NO_CACHE_SAVES, problem_lines, setting_text
from harness.output.explain import verdict
from harness.output.parts import Heading, Part, TextTable
from harness.records.printable import printable
from harness.records.units import counted, scaled_text, seconds_text, some

NO_REQUEST = "the program compiled nothing, or ran a Python that ignores PYTHONPATH (-I, -E, -S)."
"""Why a recording may have no request."""


def answer(runs: Runs) -> str:
    """Return the first line: hits, and what the other compiles took."""
    summary = runs.newest.summary
    text = (
        f"{printable(runs.newest.name)}: {summary.hits} of {summary.requests} compiles were hits, "
        f"{seconds_text(summary.compile_s)} went into the others."
    )
    if runs.good is not None:
        spent = seconds_text(runs.good.summary.compile_s)
        text += f" {printable(runs.good.name)}, the last good run, spent {spent}."
    return text


def rate_lines(summary: Summary) -> Iterator[str]:
    """Yield the hit rate by seconds, and what no cache saves where that is all that is left."""
    saved = f"{seconds_text(summary.saved_s)} saved"
    if unknown := summary.hits_without_cold:
        saved += (
            f"; what {counted(unknown, 'hit')} saved is unknown: no recording here has their "
            "compile. `harness cache ledger COMPILED HIT` compares both runs"
        )
    yield f"Hit rate by seconds: {rate_by_seconds(summary)}; {saved}"
    if summary.hits == summary.requests:
        yield f"All compiles were hits; {NO_CACHE_SAVES}"


def rate_by_seconds(summary: Summary) -> str:
    """Return the hit rate by seconds, or between what it lies."""
    if not summary.hits_without_cold:
        rate = summary.by_seconds
        if rate.value is None:
            return "nothing to divide by"
        return f"{_percent(rate.value)} ({rate.numerator:.3f} of {rate.denominator:.3f} s)"
    low, high = summary.bounds
    if math.isinf(high.numerator):
        return f"unknown, {_percent(low.value)} or more"
    if low.denominator == low.numerator:
        return "100 % (nothing was compiled)"
    shares = f"{_percent(low.value)} to {_percent(high.value)}"
    seconds = (
        f"{low.numerator:.3f} to {high.numerator:.3f} s by hits, {summary.compile_s:.3f} s not"
    )
    return f"{shares} ({seconds})"


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0):.1f} %"


def rate_line(runs: Runs, wanted: float) -> str:
    """Return how the newest run's hit rate by seconds compares with a percentage."""
    low, high = runs.rate_bounds
    if 100 * high < wanted:
        return f"FAILED: the hit rate by seconds is at most {_percent(high)}, below {wanted:g} %."
    if 100 * low >= wanted:
        return f"The hit rate by seconds is at least {_percent(low)}: not below {wanted:g} %."
    return (
        f"The hit rate by seconds is between {_percent(low)} and {_percent(high)}: unknown whether "
        f"it is below {wanted:g} %. Add the ledger of the run that compiled what was hit."
    )


SHOWN = 15
"""So many modules, runs and causes are shown."""


def page(runs: Runs) -> Iterator[Part]:
    """Yield the parts of the page."""
    summary = runs.newest.summary
    yield Heading(answer(runs))
    yield from rate_lines(summary)
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
