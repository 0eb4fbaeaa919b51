"""`harness cache inspect`: the entries of a cache directory, and their sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd

from harness.cache import survey as surveys
from harness.cache.directory import open_directory
from harness.cache.survey import Entry, Evictions, Survey
from harness.cache.written import SEE_WHY, would_write
from harness.cli import options
from harness.cli.options import CacheDirectory, MaxSize, Option
from harness.cli.output import Heading, Output, Part, TextTable
from harness.errors import UsageError
from harness.records.printable import printable
from harness.records.units import ago, size_text, some

SORTS: dict[str, Callable[[Entry], Any]] = {
    "size": lambda entry: -entry.size_bytes,
    "age": lambda entry: entry.written_at,
    "use": lambda entry: entry.used_ns or 0,
    "compile": lambda entry: -(entry.contents.compile_whole_s or 0),
    "name": lambda entry: entry.name,
    "state": lambda entry: (entry.contents.state == "readable", entry.contents.state),
}
UNKNOWN = "no recorded processor"
"""Entries for a GPU or TPU record none."""

KEY_DIGITS = 12
MOST_NAMES = 5

AGES_S = (("a day", 86400), ("a week", 604800), ("30 days", 2592000), ("a year", 31557600))


@options.command(
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
    r"""List every entry of a cache, and how large and old it all is, without importing JAX.

    \b
      harness cache inspect ~/.cache/jax
      harness cache inspect ~/.cache/jax --sort age --limit 0
      harness cache inspect ~/.cache/jax --max-size 100000000    what that cap would evict

    Exit codes: 0 fine; 2 wrong usage; 5 the directory cannot be read.
    """
    if sort not in SORTS:
        raise UsageError(f"--sort is {sort!r}. Expected one of {', '.join(SORTS)}.")
    survey = surveys.survey(open_directory(directory))
    entries = sorted(survey.entries, key=lambda entry: (SORTS[sort](entry), entry.name))
    totals = _totals(entries, survey.taken_at)
    evictions = surveys.evictions(entries, max_size) if max_size >= 0 else None
    shown = entries[: limit or None]
    answer, *rest = _summary(survey, totals, len(shown))
    parts: list[Part] = [Heading(answer), *_groups(totals)]
    parts += [_entries(shown, survey.taken_at)] if shown else []
    parts += rest
    parts += _evictions(evictions) if evictions else ()
    document = {"schema": 1, "survey": survey, "totals": totals, "evictions": evictions}
    output.show(parts, entries, document)


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
        "compiled_for": _sums(entries, lambda entry: entry.contents.processor or UNKNOWN),
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


def _groups(totals: dict[str, Any]) -> Iterator[str]:
    titles = {"last_use": "Last use", "compiled_for": "Compiled for", "modules": "Modules"}
    for name, title in titles.items():
        texts = [
            f"{printable(one)} ({of['entries']:,}, {size_text(of['size_bytes'])})"
            for one, of in totals[name].items()
        ]
        if len(texts) < totals["entries"]:  # else the table says it
            yield f"{title}: {some(texts, MOST_NAMES)}."


def _entries(entries: Sequence[Entry], now: float) -> TextTable:
    rows = []
    for entry in entries:
        contents = entry.contents
        whole_s = contents.compile_whole_s
        rows.append(
            {
                "module": printable(entry.module),
                "key": entry.key[:KEY_DIGITS] or "not JAX's",
                "size": size_text(entry.size_bytes),
                "written": ago(now - entry.written_at),
                "last use": _use(entry, now),
                "compile": "?" if whole_s is None else f"{whole_s} s",
                "packed": contents.compression or "?",
                "state": ": ".join(filter(None, (contents.state, contents.reason))),
            }
        )
    left = ("written", "last use", "packed", "state")
    return TextTable(pd.DataFrame(rows), left=left, wrapped=("module", "state"))


def _use(entry: Entry, now: float) -> str:
    if entry.used_at is None:
        return "unknown"
    text = "never" if entry.never_read else ago(now - entry.used_at)
    return text if entry.used_source == "atime-file" else f"{text} (file system)"


def _summary(survey: Survey, totals: dict[str, Any], shown: int) -> Iterator[str]:
    states = ", ".join(f"{number} {state}" for state, number in sorted(totals["states"].items()))
    packed = ", ".join(f"{n} {name}" for name, n in sorted(totals["compressions"].items()))
    yield (
        f"{survey.directory}: {totals['entries']} entries"
        + (f" ({shown} shown; --limit 0 shows all)" if shown < totals["entries"] else "")
        + f", {size_text(totals['size_bytes'])}"
        + (f"; {states}; {packed}" if states else "")
    )
    yield (
        f"Compile time as stored: {totals['compile_whole_s']} s in all. JAX stores whole seconds, "
        "rounded down: 0 s is anything under one."
    )
    if not totals["entries"]:
        yield f"{would_write()}. {SEE_WHY}"
    if survey.capped:
        yield "Used with a size cap: `last use` is JAX's own record."
    elif totals["entries"]:
        yield (
            "No trace of a size cap: `last use` is the file system's, which a mount option may "
            "hold back and which copies and backups change."
        )
    for sub in survey.sub_caches:
        yield f"{sub}; it stays when entries are removed."
    if survey.vanished:
        yield f"{survey.vanished} entries vanished while this was read: the cache is in use."
    if survey.quarantines:
        yield f"Moved aside earlier, not counted: {', '.join(survey.quarantines)}"


def _evictions(evictions: Evictions) -> Iterator[str]:
    held = f"{size_text(evictions.size_bytes)} of {size_text(evictions.max_size_bytes)}"
    yield f"Size cap: {held} used."
    if evictions.due:
        yield f"The next write evicts {len(evictions.due)}: {_some(evictions.due)}"
    if evictions.then:
        yield f"{'Then' if evictions.due else 'First to go'}: {_some(evictions.then)}"
    if evictions.unordered:
        yield (
            f"{evictions.unordered} entries have no recorded time of use: JAX evicts them first, "
            "by name; up to jax 0.11.0 it writes nothing while there is one, and `harness cache "
            "doctor` shows a way out."
        )


def _some(names: Sequence[str]) -> str:
    parts = [name.rpartition("-") for name in names]
    short = [f"{module}{dash}{key[:KEY_DIGITS] if dash else key}" for module, dash, key in parts]
    return some(short, MOST_NAMES)
