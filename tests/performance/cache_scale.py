"""How long `harness cache inspect` and `harness cache doctor` take on a large cache.

    python -m tests.performance.cache_scale [--entries 20000] [--rounds 3]

The entries are small, of JAX's own format, and used with a size cap, so that each is two files; one
in a hundred is bad. Printed are medians of whole commands, Python's start included, and the
processor time, which tells the load of a shared machine from the command's own cost. Target: at
most 10 s each on 20,000 entries.
"""

from __future__ import annotations

import hashlib
import os
import random
import statistics
import sys
import tempfile
import time
import zlib
from pathlib import Path

from tests.performance.command import options, took

TARGET_S = 10.0
HEADER = b"\x0d\x08\x03\x12\x09pjrt_ifrt"
EXECUTABLE_BYTES = 8000
"""A small program's, of which about half is left when it is compressed."""

COMMANDS = {
    "inspect": ["inspect"],
    "inspect --json": ["inspect", "--json"],
    "doctor": ["doctor"],
    "doctor --no-put-cost": ["doctor", "--no-put-cost"],
}


def fill(directory: Path, entries: int) -> None:
    """Write entries as JAX would under a size cap, one in a hundred of them torn."""
    random_bytes = random.Random(0).randbytes
    now = time.time_ns() - 3_600_000_000_000
    for number in range(entries):
        key = hashlib.sha256(str(number).encode()).hexdigest()
        noise = random_bytes(EXECUTABLE_BYTES // 2)
        data = zlib.compress(bytes(4) + HEADER + noise + bytes(EXECUTABLE_BYTES // 2))
        path = directory / f"jit_step_{number % 50}-{key}-cache"
        path.write_bytes(data[: len(data) // 2] if number % 100 == 99 else data)
        os.utime(path, ns=(now, now))
        used = directory / f"jit_step_{number % 50}-{key}-atime"
        used.write_bytes((now + number).to_bytes(8, "little"))


def main() -> None:
    """Time each command and print a line for each; exit with 1 above the target."""
    given = options(__doc__, entries=20_000, rounds=3)
    slow = False
    with tempfile.TemporaryDirectory(prefix="harness-scale-") as name:
        fill(Path(name), given.entries)
        for label, arguments in COMMANDS.items():
            command = [sys.executable, "-m", "harness", "cache", *arguments, name]
            expected = 1 if arguments[0] == "doctor" else 0
            found = [took(command, expected) for _ in range(given.rounds)]
            times = [one.wall_s for one in found]
            cpu_s = statistics.mean(one.cpu_s for one in found)
            median = statistics.median(times)
            slow = slow or median > TARGET_S
            print(
                f"{label:22s} {median:6.2f} s (least {min(times):.2f}, most {max(times):.2f}), "
                f"{cpu_s:.2f} s of processor, for {given.entries} entries"
            )
    sys.exit(slow)


if __name__ == "__main__":
    main()
