"""The words of `harness cache ledger`: sums, rates, settings that did not take effect."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.cache.ledger import Share, Summary
from harness.cache.runs import Runs
from harness.output.cache import SETTINGS, limit_text
from harness.records.printable import printable
from harness.records.units import counted, seconds_text
from harness.watch.events import BELOW_SIZE, BELOW_TIME, OVER_CAP

NO_REQUEST = "the program compiled nothing, or ran a Python that ignores PYTHONPATH (-I, -E, -S)."
"""Why a recording may have no request."""

SHOWN_ERRORS = 3

WORTH_A_LINE_S = 0.01
"""Of waiting for a lock."""


NO_CACHE_SAVES = (
    "no cache saves trace and lower, which `harness profile` measures: trace less (a loop as "
    "lax.scan or lax.fori_loop), or load a program that jax.export or "
    "jax.experimental.serialize_executable stored"
)


def answer(found: Runs) -> str:
    """Return the first line: hits, and what the other compiles took."""
    summary = found.newest.summary
    text = (
        f"{printable(found.newest.name)}: {summary.hits} of {summary.requests} compiles were hits, "
        f"{seconds_text(summary.compile_s)} went into the others."
    )
    if found.good is not None:
        spent = seconds_text(found.good.summary.compile_s)
        text += f" {printable(found.good.name)}, the last good run, spent {spent}."
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


def reason_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each reason that a setting decides: with its value, and what to set."""
    for reason in summary.unwritten:
        if reason not in SETTINGS:
            continue
        values = ", ".join(limit_text(reason, one) for one in summary.limits.get(reason, ()))
        text = f"{reason}: {SETTINGS[reason]}"
        if reason in WRITES_ALL and values:
            text += f" is {values} here; {WRITES_ALL[reason]} stores every program"
        yield f"{text}."


WRITES_ALL = {BELOW_TIME: "0", BELOW_SIZE: "-1", OVER_CAP: "-1"}
"""The value of the setting with which nothing is left out."""


def problem_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each kind of problem, if there was one."""
    if summary.read_errors or summary.write_errors:
        yield f"errors: {summary.read_errors} reading, {summary.write_errors} writing"
        yield from (f"  {text}" for text in summary.errors[:SHOWN_ERRORS])
        yield "  `harness cache doctor DIR` checks the directory, and this user's rights there."
    for one in summary.overridden:
        yield (
            f"{one.name.upper()}={one.variable} has no effect: JAX uses {one.value or 'none'}. The "
            f"program sets {one.name} itself, or the variable was set after `import jax`."
        )
    for change in summary.late:
        yield (
            f"{change.name} was set to {change.value or 'none'} without effect: the cache's "
            f"settings are frozen at its first use, and JAX goes on with {change.used}. Set it "
            "before the first compile."
        )
    if summary.before_directory:
        yield (
            f"{counted(summary.before_directory, 'request')} came before "
            "jax_compilation_cache_dir was set: set it before the first compile."
        )
    if summary.lock_wait_s >= WORTH_A_LINE_S:
        yield (
            f"{seconds_text(summary.lock_wait_s)} went into waiting for the lock of a directory "
            "with a size cap (jax_compilation_cache_max_size): without a cap there is no lock."
        )
    if summary.unproven_keys:
        yield (
            f"Not explained by the captured components: {counted(summary.unproven_keys, 'key')}; "
            "`harness cache explain` may miss a cause."
        )


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


def rate_line(found: Runs, wanted: float) -> str:
    """Return how the newest run's hit rate by seconds compares with a percentage."""
    low, high = found.rate_bounds
    if 100 * high < wanted:
        return f"FAILED: the hit rate by seconds is at most {high:.1%}, below {wanted:g} %."
    if 100 * low >= wanted:
        return f"The hit rate by seconds is at least {low:.1%}: not below {wanted:g} %."
    return (
        f"The hit rate by seconds is between {low:.1%} and {high:.1%}: unknown whether it is "
        f"below {wanted:g} %. Add the ledger of the run that compiled what was hit."
    )
