"""What `harness cache inspect` prints of the entries of a directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.cache.here import Here
from harness.cache.survey import Entry, Evictions, Survey
from harness.output.cache_doctor import SEE_WHY, fault_text, short, sub_cache_line, writes
from harness.records.printable import printable
from harness.records.units import ago, counted, size_text, some

UNKNOWN = "no recorded processor"
"""Entries for a GPU or TPU record none."""

KEY_DIGITS = 8
MOST_NAMES = 5

GROUPS = {
    "last_use": "Last use",
    "compiled_for": "Compiled for",
    "releases": "jaxlib",
    "modules": "Modules",
}


def answer(survey: Survey, totals: dict[str, Any], shown: int) -> str:
    """The first line: how many entries there are, how large, and in which state."""
    states = ", ".join(f"{number} {state}" for state, number in sorted(totals["states"].items()))
    cut = f" ({shown} shown; --limit 0 shows all)" if shown < totals["entries"] else ""
    size = size_text(totals["size_bytes"])
    text = f"{survey.directory}: {counted(totals['entries'], 'entry')}{cut}, {size}"
    return f"{text}; {states}" if states else text


def groups(totals: dict[str, Any]) -> Iterator[str]:
    """Number and size of the entries in each group, where there are fewer groups than entries."""
    for name, title in GROUPS.items():
        texts = [
            f"{printable(one) or UNKNOWN} ({of['entries']:,}, {size_text(of['size_bytes'])})"
            for one, of in totals[name].items()
        ]
        if len(texts) < totals["entries"]:  # else the table shows it
            yield f"{title}: {some(texts, MOST_NAMES)}."


def rows(entries: Sequence[Entry], now: float) -> list[dict[str, str]]:
    """The rows of the table."""
    states = any(entry.contents.state != "readable" for entry in entries)
    return [
        {
            "module": printable(entry.module),
            "key": entry.key[:KEY_DIGITS] or "not JAX's",
            "size": size_text(entry.size_bytes),
            "written": ago(now - entry.written_at),
            "last use": _use(entry, now),
            "compile": _whole(entry.contents.compile_whole_s),
        }
        | ({"state": _state(entry)} if states else {})
        for entry in entries
    ]


def _use(entry: Entry, now: float) -> str:
    if entry.used_at is None:
        return "unknown"
    return "never" if entry.never_read else ago(now - entry.used_at)


def _whole(seconds: int | None) -> str:
    return "?" if seconds is None else f"{seconds} s"


def _state(entry: Entry) -> str:
    contents = entry.contents
    fault = fault_text(contents.fault, contents.detail, contents.compression)
    return ": ".join(filter(None, (contents.state, fault)))


def notes(survey: Survey, totals: dict[str, Any], here: Here) -> Iterator[str]:
    """What a reader of the table should know."""
    if not totals["entries"] or here.blocked:
        yield writes(here)
    if not totals["entries"]:
        yield SEE_WHY
    else:
        by = "JAX's own record" if survey.capped else "the file system's time of last access"
        whole = f"whole seconds, rounded down: {totals['compile_whole_s']} s in all"
        yield f"`last use` is {by}. Compile times are {whole}."
    yield from map(sub_cache_line, survey.sub_caches)
    if survey.vanished:
        yield f"{counted(survey.vanished, 'entry')} vanished while this was read: it is in use."
    if survey.quarantines:
        yield f"Moved aside earlier, not counted: {', '.join(survey.quarantines)}"


def eviction_lines(evictions: Evictions, here: Here) -> Iterator[str]:
    """What a size cap would evict."""
    used = f"{size_text(evictions.size_bytes)} of {size_text(evictions.max_size_bytes)}"
    yield f"Size cap: {used} used."
    if evictions.due:
        yield f"The next write evicts {len(evictions.due)}: {_some(evictions.due)}"
    if evictions.then:
        yield f"{'Then' if evictions.due else 'First to go'}: {_some(evictions.then)}"
    if evictions.unordered:
        first = "JAX evicts them first, by name"
        if here.needs_times:
            first = f"jax {here.release} writes nothing, see `harness cache doctor DIR`"
        yield f"{counted(evictions.unordered, 'entry')} without a recorded time of use: {first}."


def _some(names: Sequence[str]) -> str:
    return some([short(name) for name in names], MOST_NAMES)
