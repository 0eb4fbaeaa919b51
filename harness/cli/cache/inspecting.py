"""`harness cache inspect`: every entry of a cache directory, and what they add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.cache import app
from harness.cli.cache.options import AsJson, CacheDirectory, MaxSize
from harness.cli.cache.printing import print_json, print_lines
from harness.cli.output import printable as shown
from harness.errors import UsageError
from harness.records.units import ago, size_text

if TYPE_CHECKING:
    from harness.cache.entries import Entry, Survey
    from harness.cache.sums import Evictions, Totals

SORTS = ("size", "age", "use", "compile", "name", "state")
KEY_DIGITS = 12


@app.command("inspect")
def inspect(
    directory: CacheDirectory,
    max_size: MaxSize = -1,
    sort: Annotated[str, typer.Option(help=f"Order of the rows: {', '.join(SORTS)}.")] = "size",
    limit: Annotated[int, typer.Option(min=0, help="Rows to print; 0 for all.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List every entry of a cache, readable or not, without importing JAX or the program."""
    from harness.cache import entries, sums
    from harness.cache.listing import open_directory

    if sort not in SORTS:
        raise UsageError(f"--sort is {sort!r}. Expected one of {', '.join(SORTS)}.")
    survey = entries.survey(open_directory(directory))
    rows = sorted(survey.entries, key=_order(sort))
    totals = sums.totals(rows)
    evictions = sums.evictions(rows, max_size) if max_size >= 0 else None
    if as_json:
        print_json({"survey": survey, "totals": totals, "evictions": evictions})
        return
    _print_rows(rows[: limit or None], survey.taken_at)
    _print_summary(survey, totals, min(limit or len(rows), len(rows)))
    if evictions:
        _print_evictions(evictions)


def _order(sort: str) -> Any:
    def key(entry: Entry) -> Any:
        return {
            "size": -entry.size_bytes,
            "age": entry.written_at,
            "use": entry.used_ns or 0,
            "compile": -(entry.contents.compile_whole_s or 0),
            "name": entry.name,
            "state": (entry.contents.state == "readable", entry.contents.state),
        }[sort], entry.name

    return key


def _print_rows(rows: list[Entry], now: float) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.cli.output import console

    if not rows:
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("module", "key", "size", "written", "last use", "compile", "packed", "state"):
        right = heading in ("size", "compile")
        table.add_column(
            heading,
            justify="right" if right else "left",
            no_wrap=heading not in ("module", "state"),
            overflow="fold",
        )
    for entry in rows:
        whole_s = entry.contents.compile_whole_s
        cells = (
            entry.module,
            entry.key[:KEY_DIGITS] or "not JAX's",
            size_text(entry.size_bytes),
            ago(now - entry.written_at),
            _use(entry, now),
            "?" if whole_s is None else f"{whole_s} s",
            entry.contents.compression or "?",
            ": ".join(filter(None, (entry.contents.state, entry.contents.reason))),
        )
        table.add_row(*(Text(shown(cell)) for cell in cells))
    console.print(table)


def _use(entry: Entry, now: float) -> str:
    if entry.used_at is None:
        return "unknown"
    text = "never" if entry.never_read else ago(now - entry.used_at)
    return text if entry.used_source == "atime-file" else f"{text} (file system)"


def _print_summary(survey: Survey, totals: Totals, shown_rows: int) -> None:
    states = ", ".join(f"{number} {state}" for state, number in sorted(totals.states.items()))
    packed = ", ".join(f"{n} {name}" for name, n in sorted(totals.compressions.items()))
    lines = [
        f"{survey.directory}: {totals.entries} entries"
        + (f" ({shown_rows} shown; --limit 0 shows all)" if shown_rows < totals.entries else "")
        + f", {size_text(totals.size_bytes)}"
        + (f"; {states}; {packed}" if states else ""),
        f"Compile time as stored: {totals.compile_whole_s} s in all. JAX stores whole seconds, "
        "rounded down: 0 s is anything under one.",
    ]
    if survey.capped:
        lines.append("Used with a size cap: `last use` is JAX's own record.")
    elif totals.entries:
        lines.append(
            "No trace of a size cap: `last use` is the file system's, which a mount option may "
            "hold back and which copies and backups change."
        )
    lines += [
        f"XLA's own cache {sub.name}: {sub.files} files, {size_text(sub.size_bytes)}; it survives "
        "when entries are removed."
        for sub in survey.sub_caches
    ]
    if survey.vanished:
        lines.append(
            f"{survey.vanished} entries vanished while this was read: the cache is in use."
        )
    if survey.quarantines:
        lines.append(f"Moved aside earlier, not counted: {', '.join(survey.quarantines)}")
    print_lines(lines)


def _print_evictions(evictions: Evictions) -> None:
    held = f"{size_text(evictions.size_bytes)} of {size_text(evictions.max_size_bytes)}"
    lines = [f"Size cap: {held} used."]
    if evictions.due:
        lines.append(f"The next write evicts {len(evictions.due)}: {_some(evictions.due)}")
    if evictions.then:
        lines.append(f"{'Then' if evictions.due else 'First to go'}: {_some(evictions.then)}")
    if evictions.unordered:
        lines.append(
            f"{evictions.unordered} entries have no recorded time of use: JAX evicts them first, "
            "by name; jax 0.10.2 writes nothing while there is one."
        )
    print_lines(lines)


def _some(names: tuple[str, ...], most: int = 5) -> str:
    short = [_short(name) for name in names[:most]]
    return ", ".join(short) + (f" and {len(names) - most} more" if len(names) > most else "")


def _short(name: str) -> str:
    module, dash, key = name.rpartition("-")
    return f"{module}-{key[:KEY_DIGITS]}" if dash else name
