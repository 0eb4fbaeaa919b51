"""What one write to the cache costs at a given number of entries: measured by doing it.

Under a size cap JAX looks at every entry and reads its time of use before each write
(its LRUCache, jax 0.10.2 to 0.12), so that a write grows with the number of entries. The
measurement runs JAX's own code, in a process of its own, on a scratch directory with as many
entries: never on the user's.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import msgspec

from harness.errors import HarnessError
from harness.jaxhooks.jax_names import file_cache
from harness.jaxhooks.temporary import temporary_folder
from harness.measure import channel
from harness.measure.child import ChildError, ChildTimeout, ask

MOST_ENTRIES = 50_000
"""More are not made; the cost of more is in proportion."""

PUTS = 3
"""Fewer where one takes long: then chance matters less."""

CAP_BYTES = 1 << 50
TIMEOUT_S = 300.0


class PutCost(msgspec.Struct, frozen=True):
    """The cost of one write, as the median of a few.

    Attributes:
        measured_entries: The number of entries in the scratch directory.
        first_s: With a size cap and an empty directory, in seconds.
        where: The folder in which the scratch directory was made.
    """

    entries: int
    measured_entries: int
    capped_s: float
    first_s: float
    where: str


def measure(entries: int, scratch: Path | None = None) -> PutCost:
    """Measure what a write costs.

    That is done in a folder in `scratch`, else in the system's temporary folder.
    """
    made = min(entries, MOST_ENTRIES)
    try:
        with temporary_folder(scratch) as name:
            where = Path(name)
            empty, full = where / "empty", where / "full"
            full.mkdir()
            _mirror(full, made)
            first_s, capped_s = ask(__name__, [str(empty), str(full)], None, TIMEOUT_S)
            parent = str(where.parent)
    except (OSError, ChildError) as error:
        slow = isinstance(error, ChildTimeout)
        reason = f"it took more than {TIMEOUT_S:.0f} s" if slow else str(error).rstrip(".")
        raise HarnessError(
            f"The cost of JAX's own write in a scratch directory could not be measured: {reason}. "
            "Give --scratch a folder with room for it, or leave it out with --no-put-cost."
        ) from None
    scale = entries / made if made else 1.0
    return PutCost(entries, made, first_s + (capped_s - first_s) * scale, first_s, parent)


def _mirror(directory: Path, entries: int) -> None:
    # JAX asks an entry's file for its size only, and reads its time of use.
    used = (1 << 60).to_bytes(8, "little")
    for number in range(entries):
        name = f"{directory}/jit_scratch-{number:064x}"
        with open(f"{name}-cache", "wb"):
            pass
        with open(f"{name}-atime", "wb", buffering=0) as file:
            file.write(used)


def _put_s(directories: list[str]) -> list[float]:
    """In the process of its own: return the median seconds of a write to each directory."""
    medians = []
    for path in directories:
        cache = file_cache().LRUCache(path, max_size=CAP_BYTES)
        seconds: list[float] = []
        while len(seconds) < PUTS and sum(seconds) <= 0.5:
            begin = time.perf_counter()
            cache.put(f"jit_probe-{len(seconds):064x}", bytes(4096))
            seconds.append(time.perf_counter() - begin)
        medians.append(statistics.median(seconds))
    return medians


if __name__ == "__main__":
    channel.serve(_put_s)
