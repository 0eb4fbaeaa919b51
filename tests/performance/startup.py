"""What it costs to import the harness and to ask it for help, beside asv.

    python -m tests.performance.startup [--rounds 15]

Commands take turns; printed are the medians. Targets: `harness --help` no slower than
`asv --help`; `import harness` at most 0.1 s more than an empty interpreter.
"""

from __future__ import annotations

import functools
import statistics
import sys
from pathlib import Path

from tests.performance.command import in_turns, options, took

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
    arms = {name: functools.partial(took, command) for name, command in COMMANDS.items()}
    for name, times in in_turns(given.rounds, arms).items():
        seconds = [one.wall_s for one in times]
        print(f"{name:18s} {statistics.median(seconds):.3f} s (least {min(seconds):.3f} s)")


if __name__ == "__main__":
    main()
