"""Entries that a cache can do without: which they are, and their removal.

What goes is first moved into a folder of its own, one atomic rename each, and only then deleted: a
program that looks for it at that moment finds it whole, or not at all, and compiles.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.cache.quarantine import Moved, move_aside
from harness.cache.survey import Entry, Survey

PREFIX = "pruned-"
"""Begins the name of a folder of entries that are being deleted."""

SETTLE_S = 60.0
"""An entry that is younger than this may still be on its way, and stays."""

LEFT_S = 600.0
"""A folder that nothing was moved into for so long was left by a call that was stopped."""

CPU, OTHER = "cpu", "other"
TARGETS = (CPU, OTHER)
"""An entry for a CPU says for which processor it is compiled; one for a GPU or TPU does not."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What may go; what is None or empty does not matter."""

    max_size_bytes: int | None = None
    """As many go, the longest unused first, as leave the whole directory with so many bytes."""
    unused_s: float | None = None
    """Not used for so long, as far as the directory tells."""
    age_s: float | None = None
    """Written so long ago."""
    target: str = ""
    """One of :data:`TARGETS`."""
    only: Collection[str] | None = None
    """Among these names."""
    keep: Collection[str] = ()
    """These names stay, whatever else is said."""


def superfluous(survey: Survey, limits: Limits) -> list[Entry]:
    """Return the entries that match every limit, in the order in which they go.

    Under `max_size_bytes` these are candidates, of which no more go than must. What JAX did not
    write, or wrote a minute ago, stays.
    """
    now = survey.taken_at
    ours = [entry for entry in survey.entries if entry.key]
    order = sorted((entry for entry in ours if _matches(entry, limits, now)), key=used_at)
    if limits.max_size_bytes is None:
        return order
    over = sum(entry.size_bytes for entry in survey.entries) - limits.max_size_bytes
    before = itertools.accumulate((entry.size_bytes for entry in order), initial=0)
    return [entry for entry, gone in zip(order, before, strict=False) if gone < over]


def used_at(entry: Entry) -> float:
    """Return when an entry was last of use, in seconds since 1970: read, or else written."""
    return max(entry.used_at or 0.0, entry.written_at)


def _matches(entry: Entry, limits: Limits, now: float) -> bool:
    target = CPU if entry.contents.processor else OTHER
    return (
        abs(now - entry.written_at) >= SETTLE_S
        and (limits.unused_s is None or now - used_at(entry) >= limits.unused_s)
        and (limits.age_s is None or now - entry.written_at >= limits.age_s)
        and limits.target in ("", target)
        and (limits.only is None or entry.name in limits.only)
        and entry.name not in limits.keep
    )


def remove(directory: Path, entries: Sequence[Entry]) -> Moved:
    """Delete entries, and what an earlier call that was stopped left in its folder."""
    moved = move_aside(directory, entries, prefix=PREFIX)
    for folder in directory.glob(PREFIX + "*"):
        if str(folder) == moved.folder or _is_left(folder):
            shutil.rmtree(folder, ignore_errors=True)  # another call may be at it
    return moved


def _is_left(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > LEFT_S
    except OSError:
        return False
