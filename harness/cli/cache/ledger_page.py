"""What `harness cache ledger` shows: a program that was run, or runs and hosts of ledgers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from harness.cache.ledger import Share, Summary
from harness.cache.runs import LedgerRun, Runs
from harness.cli.output import Heading, Part, TextTable
from harness.frame.frame import rows_of
from harness.records.printable import printable
from harness.records.units import counted, scaled_text, seconds_text, some
from harness.watch.ledger_events import SETTINGS, reason_text

SHOWN_ERRORS = 3

SHOWN = 15
"""So many modules, runs and causes are shown."""


def lines_of(summary: Summary) -> Iterator[str]:
    """Yield a summary as lines of text."""
    requests = counted(summary.requests, "compile request")
    yield f"{requests} in {counted(summary.processes, 'process')}"
    yield f"  {summary.hits} hits, {summary.bytes_in} bytes read in {summary.load_s:.3f} s"
    yield f"  {summary.written} misses written, {summary.bytes_out} bytes"
    for reason, count in summary.unwritten.items():
        yield f"  {count} misses not written: {reason_text(reason, limit_text(summary, reason))}"
    if summary.failed:
        yield f"  {summary.failed} failed: the program saw an error"
    yield f"hit rate by count: {_rate(summary.by_count, '', 0)}"
    yield f"hit rate by seconds: {rate_by_seconds(summary)}"
    saved = f"compile seconds: {summary.compile_s:.3f} s spent, {summary.saved_s:.3f} s saved"
    yield f"{saved} (JAX's own compile_time_saved_sec: {summary.jax_saved_s:.3f} s)"
    if summary.hits_without_cold:
        yield (
            f"  what {counted(summary.hits_without_cold, 'hit')} saved is not in this sum: no "
            "ledger here has their compile. `harness cache ledger COMPILED HIT` compares both runs."
        )
    yield from problem_lines(summary)
    if summary.hits == summary.requests:
        yield f"all compiles were hits; {NO_CACHE_SAVES}"
    yield f"the ledger itself took {summary.own_s:.3f} s"


NO_CACHE_SAVES = (
    "no cache saves trace and lower, which `harness profile` measures: trace less (a loop as "
    "lax.scan or lax.fori_loop), or load a program that jax.export or "
    "jax.experimental.serialize_executable stored"
)


def limit_text(summary: Summary, reason: str) -> str:
    """Return the thresholds that decided a reason, and the value at which all is written."""
    values = ", ".join(f"{value:g}" for value in summary.limits.get(reason, ()))
    return f"{values} in effect; 0 writes every program" if values else ""


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


def page(found: Runs) -> Iterator[Part]:
    """Yield the parts of the page."""
    summary = found.newest.summary
    yield Heading(_answer(found))
    saved = f"{seconds_text(summary.saved_s)} saved"
    if unknown := summary.hits_without_cold:
        saved += f", and what {counted(unknown, 'hit')} saved is unknown"
    yield f"hit rate by seconds: {rate_by_seconds(summary)}; {saved}"
    yield from problem_lines(summary)
    for text, modules in found.causes[:SHOWN]:
        yield f"  {some(modules, 3)}: {text}"
    if (more := len(found.causes) - SHOWN) > 0:
        yield f"  … and {more} more causes; --format json gives all."
    yield _modules(found.modules[:SHOWN])
    if len(found.modules) > SHOWN:
        yield f"… and {len(found.modules) - SHOWN} more modules; --format json and csv give all."
    reasons = dict.fromkeys(
        why for all_of in found.modules["why"][:SHOWN] for why in all_of.split("; ")
    )
    yield from (f"{why}: {SETTINGS[why]} decides it." for why in reasons if why in SETTINGS)
    if len(found.all) > 1:
        yield _runs(found.all[-SHOWN:])
    yield _hosts(found.hosts)
    yield from map(str, found.sub_caches)


def _answer(found: Runs) -> str:
    summary = found.newest.summary
    answer = (
        f"{printable(found.newest.name)}: {summary.hits} of {summary.requests} compiles were hits, "
        f"{seconds_text(summary.compile_s)} went into the others."
    )
    if found.good is not None:
        spent = seconds_text(found.good.summary.compile_s)
        answer += f" {printable(found.good.name)}, the last good run, spent {spent}."
    return answer


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


def document(found: Runs) -> dict[str, Any]:
    """Return all of it for JSON."""

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
        "runs": [run(one) for one in found.all],
        "sub_caches": found.sub_caches,
    }
