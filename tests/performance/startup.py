"""What it costs to import the harness and to ask it for help, beside asv.

    python -m tests.performance.startup [--rounds 15]

Commands take turns; printed are the medians. Targets: `harness --help` no slower than
`asv --help`; `import harness` at most 0.1 s more than an empty interpreter.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.performance.command import options

BIN = Path(sys.executable).parent

COMMANDS = {
    "empty interpreter": [sys.executable, "-c", "pass"],
    "import harness": [sys.executable, "-c", "import harness"],
    "harness --help": [str(BIN / "harness"), "--help"],
    "asv --help": [str(BIN / "asv"), "--help"],
}


def main() -> None:
    """Time each command and print a line for each."""
    given = options(__doc__, rounds=15)
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(given.rounds):
        for name in random.sample(list(COMMANDS), len(COMMANDS)):
            begin = time.perf_counter()
            subprocess.run(COMMANDS[name], check=True, capture_output=True)
            times[name].append(time.perf_counter() - begin)
    for name, seconds in times.items():
        print(f"{name:18s} {statistics.median(seconds):.3f} s (least {min(seconds):.3f} s)")


if __name__ == "__main__":
    main()
