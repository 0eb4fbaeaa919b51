"""`harness cache stats`: a cache directory in one screen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import pandas as pd

from harness.cache import survey as surveys
from harness.cache.directory import open_directory
from harness.cache.removal import CPU, OTHER, used_at
from harness.cache.survey import Entry, Survey
from harness.cli import options
from harness.cli.options import CacheDirectory, JsonOutput
from harness.cli.output import Part, TextTable
from harness.records.printable import printable
from harness.records.units import counted, size_text

AGES_S = (("a day", 86400), ("a week", 604800), ("30 days", 2592000), ("a year", 31557600))
LARGEST = 8
"""So many modules are shown."""


@options.command()
def stats(*, directory: CacheDirectory, output: JsonOutput) -> None:
    r"""A cache in one screen: how large, how old, for whom, and what is the most of it.

    \b
      harness cache stats ~/.cache/jax

    Exit codes: 0 fine; 2 wrong usage; 5 the directory cannot be read.
    """
    seen = surveys.survey(open_directory(directory))
    groups = {
        "last of use": _sums(seen.entries, lambda entry: _age(seen.taken_at - used_at(entry))),
        "made for": _sums(seen.entries, _made_for),
        "state": _sums(seen.entries, lambda entry: entry.contents.state),
        "module": _sums(seen.entries, lambda entry: entry.module),
    }
    rows = [{"by": by, **row} for by, rows in groups.items() for row in rows]
    document = {"schema": 1, "directory": seen.directory, "groups": groups}
    output.show(_page(seen, groups), rows, document)


def _age(seconds: float) -> str:
    return next((f"within {name}" for name, most in AGES_S if seconds < most), "longer ago")


def _made_for(entry: Entry) -> str:
    return f"{CPU}: {entry.contents.processor}" if entry.contents.processor else OTHER


def _sums(entries: Iterable[Entry], name: Callable[[Entry], str]) -> list[dict[str, str | int]]:
    of: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        of[name(entry)].append(entry)
    rows: list[dict[str, str | int]] = [
        {
            "name": key,
            "entries": len(own),
            "size_bytes": sum(entry.size_bytes for entry in own),
            "compile_whole_s": sum(entry.contents.compile_whole_s or 0 for entry in own),
        }
        for key, own in of.items()
    ]
    return sorted(rows, key=lambda row: -int(row["size_bytes"]))


def _page(seen: Survey, groups: dict[str, list[dict[str, str | int]]]) -> Iterator[Part]:
    totals = surveys.totals(seen.entries)
    capped = "used with a size cap" if seen.capped else "no size cap"
    yield (
        f"{seen.directory}: {totals.entries} entries, {size_text(totals.size_bytes)}, {capped}; "
        f"compiling them took at least {totals.compile_whole_s} s."
    )
    for by, rows in groups.items():
        if not rows:
            continue
        shown = rows[:LARGEST]
        yield TextTable(
            pd.DataFrame(
                {
                    by: printable(str(row["name"])),
                    "entries": f"{row['entries']:,}",
                    "size": size_text(float(row["size_bytes"])),
                    "compile": f"{row['compile_whole_s']} s",
                }
                for row in shown
            )
        )
        if len(rows) > LARGEST:
            yield f"… and {len(rows) - LARGEST} more; --format csv gives all."
    for sub in seen.sub_caches:
        held = f"{counted(sub.files, 'file')}, {size_text(sub.size_bytes)}"
        yield f"XLA's own cache {sub.name}: {held}"
