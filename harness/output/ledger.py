"""The words of `harness cache ledger`: sums, rates, settings that did not take effect."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.cache.ledger import Share, Summary
from harness.cache.runs import Runs
from harness.output.cache import NO_CACHE_SAVES
from harness.records.printable import printable
from harness.records.units import counted, seconds_text

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
    yield f"hit rate by seconds: {rate_by_seconds(summary)}; {saved}"
    if summary.hits == summary.requests:
        yield f"all compiles were hits; {NO_CACHE_SAVES}"


def rate_by_seconds(summary: Summary) -> str:
    """Return the hit rate by seconds, or between what it lies."""
    if not summary.hits_without_cold:
        return _rate(summary.by_seconds, " s", 3)
    low, high = summary.bounds
    if math.isinf(high.numerator):
        return f"unknown, {low.value or 0:.1%} or more"
    if low.denominator == low.numerator:
        return "100.0% (nothing was compiled)"
    between = f"{low.numerator:.3f} to {high.numerator:.3f} s"
    return f"{low.value:.1%} to {high.value:.1%} ({between} by hits, {summary.compile_s:.3f} s not)"


def _rate(rate: Share, unit: str, digits: int) -> str:
    if rate.value is None:
        return "nothing to divide by"
    top, bottom = (f"{number:.{digits}f}{unit}" for number in (rate.numerator, rate.denominator))
    return f"{rate.value:.1%} ({top} of {bottom})"


def rate_line(runs: Runs, wanted: float) -> str:
    """Return how the newest run's hit rate by seconds compares with a percentage."""
    low, high = runs.rate_bounds
    if 100 * high < wanted:
        return f"FAILED: the hit rate by seconds is at most {high:.1%}, below {wanted:g} %."
    if 100 * low >= wanted:
        return f"The hit rate by seconds is at least {low:.1%}: not below {wanted:g} %."
    return (
        f"The hit rate by seconds is between {low:.1%} and {high:.1%}: unknown whether it is "
        f"below {wanted:g} %. Add the ledger of the run that compiled what was hit."
    )
