"""What the entries of a cache add up to, and which of them a size cap would evict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from harness.cache.entries import Entry


class Totals(msgspec.Struct, frozen=True):
    """Sums over all entries of a survey."""

    entries: int
    size_bytes: int
    compile_whole_s: int
    states: dict[str, int]
    compressions: dict[str, int]
    never_read: int


class Evictions(msgspec.Struct, frozen=True):
    """What a size cap would evict, in JAX's order.

    Attributes:
        max_size_bytes: The cap.
        size_bytes: What the cap is held against: the entries alone, without XLA's caches.
        due: Names that the next write would evict whatever its size.
        then: The names that follow once a write needs room.
        unordered: How many entries have no recorded time of use. JAX takes them first, in the order
            of their names; jax 0.10.2 cannot write at all while there is one.
    """

    max_size_bytes: int
    size_bytes: int
    due: tuple[str, ...]
    then: tuple[str, ...]
    unordered: int


def totals(entries: Iterable[Entry]) -> Totals:
    """Sums over entries."""
    states: Counter[str] = Counter()
    compressions: Counter[str] = Counter()
    number = size_bytes = compile_s = never = 0
    for entry in entries:
        number += 1
        size_bytes += entry.size_bytes
        compile_s += entry.contents.compile_whole_s or 0
        never += entry.never_read is True
        states[entry.contents.state] += 1
        compressions[entry.contents.compression or "unknown"] += 1
    return Totals(number, size_bytes, compile_s, dict(states), dict(compressions), never)


def evictions(entries: Iterable[Entry], max_size_bytes: int, then: int = 5) -> Evictions:
    """What a size cap would evict next, in the order of JAX's cache: oldest use, then name.

    Args:
        entries: All entries of the directory.
        max_size_bytes: The cap, as in jax_compilation_cache_max_size.
        then: How many names to give beyond those that are due.
    """
    order = sorted(entries, key=lambda entry: (_recorded(entry), entry.name))
    size_bytes = left = sum(entry.size_bytes for entry in order)
    due = 0
    while left > max_size_bytes:
        left -= order[due].size_bytes
        due += 1
    return Evictions(
        max_size_bytes,
        size_bytes,
        due=tuple(entry.name for entry in order[:due]),
        then=tuple(entry.name for entry in order[due : due + then]),
        unordered=sum(entry.used_source != "atime-file" for entry in order),
    )


def _recorded(entry: Entry) -> int:
    # jax 0.11.2 and later give an entry without a recorded time of use the time 0.
    return (entry.used_ns or 0) if entry.used_source == "atime-file" else 0
