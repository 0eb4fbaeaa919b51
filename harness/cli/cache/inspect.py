"""`harness cache inspect`: the entries of a cache directory, and their sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from harness.cache import survey as surveys
from harness.cache.directory import MissingCacheError, open_directory
from harness.cache.here import look_here, settings
from harness.cache.survey import Entry
from harness.cli import options
from harness.cli.options import CacheDirectory, MaxSize, Option
from harness.cli.output import Heading, Output, Part, Rows, TextTable
from harness.errors import UsageError
from harness.output import cache_inspect as words
from harness.output.cache_doctor import SEE_WHY, threshold
from harness.targets.host import installed

SORTS: dict[str, Callable[[Entry], Any]] = {
    "size": lambda entry: -entry.size_bytes,
    "age": lambda entry: entry.written_at,
    "use": lambda entry: entry.used_ns or 0,
    "compile": lambda entry: -(entry.contents.compile_whole_s or 0),
    "name": lambda entry: entry.name,
    "state": lambda entry: (entry.contents.state == "readable", entry.contents.state),
}

AGES_S = (("a day", 86400), ("a week", 604800), ("30 days", 2592000), ("a year", 31557600))


@options.command(
    common="sort limit max_size",
    sort=Option(help=f"Order of the rows: {', '.join(SORTS)}."),
    limit=Option(min=0, help="Rows to print; 0 for all."),
)
def inspect(
    *,
    directory: CacheDirectory,
    max_size: MaxSize = -1,
    sort: str = "size",
    limit: int = 20,
    output: Output,
) -> None:
    r"""List the entries of a cache, how large and old they are; needs no JAX.

    \b
      harness cache inspect ~/.cache/jax
      harness cache inspect ~/.cache/jax --sort age --limit 0
      harness cache inspect ~/.cache/jax --max-size 100000000    what that cap would evict

    Exit codes: 0 fine; 2 wrong usage; 5 the directory cannot be read.
    """
    if sort not in SORTS:
        raise UsageError(f"--sort is {sort!r}. Expected one of {', '.join(SORTS)}.")
    used = settings(max_size)
    try:
        survey = surveys.survey(open_directory(directory))
    except MissingCacheError as error:
        raise UsageError(f"{error} {threshold(used)} {SEE_WHY}") from None
    here = look_here(survey, used, installed("jax"))
    entries = sorted(survey.entries, key=lambda entry: (SORTS[sort](entry), entry.name))
    totals = _totals(entries, survey.taken_at)
    evictions = surveys.evictions(entries, max_size) if max_size >= 0 else None
    shown = entries[: limit or None]
    parts: list[Part] = [Heading(words.answer(survey, totals, len(shown)))]
    parts += words.groups(totals)
    if shown:
        rows = Rows(words.rows(shown, survey.taken_at))
        parts.append(TextTable(rows, left=("written", "last use", "state"), cut=("state",)))
    parts += words.notes(survey, totals, here)
    parts += words.eviction_lines(evictions, here) if evictions else ()
    document = {"schema": 2, "survey": survey, "here": here}
    output.show(parts, entries, {**document, "totals": totals, "evictions": evictions})


def _totals(entries: Sequence[Entry], now: float) -> dict[str, Any]:
    contents = [entry.contents for entry in entries]
    return {
        "entries": len(entries),
        "size_bytes": sum(entry.size_bytes for entry in entries),
        "compile_whole_s": sum(one.compile_whole_s or 0 for one in contents),
        "states": Counter(one.state for one in contents),
        "compressions": Counter(one.compression or "unknown" for one in contents),
        "never_read": sum(entry.never_read is True for entry in entries),
        "last_use": _sums(entries, lambda entry: _age(entry, now)),
        "compiled_for": _sums(entries, lambda entry: entry.contents.executable.processor),
        "releases": _sums(entries, lambda entry: entry.contents.executable.release or "unknown"),
        "modules": _sums(entries, lambda entry: entry.module),
    }


def _sums(entries: Sequence[Entry], group: Callable[[Entry], str]) -> dict[str, dict[str, int]]:
    """Return number and size of the entries in each group, the largest group first."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for entry in entries:
        sizes[group(entry)].append(entry.size_bytes)
    largest = sorted(sizes.items(), key=lambda item: -sum(item[1]))
    return {name: {"entries": len(of), "size_bytes": sum(of)} for name, of in largest}


def _age(entry: Entry, now: float) -> str:
    """Return how long ago an entry was read, or else written."""
    ago_s = now - max(entry.used_at or 0.0, entry.written_at)
    return next((f"within {name}" for name, most_s in AGES_S if ago_s < most_s), "longer ago")
