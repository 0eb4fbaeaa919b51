"""What it costs to import the harness and to ask it for help, beside asv.

    python -m tools.performance.startup [--rounds 15]

Commands take turns. Targets: `harness --help` no slower than `asv --help`; `import harness` at most
0.1 s more than an empty interpreter.
"""

import functools
import sys
from pathlib import Path

from tools.performance.command import in_turns, options, spread, took

BIN = Path(sys.executable).parent
COMMANDS = {
    "empty interpreter": [sys.executable, "-c", "pass"],
    "import harness": [sys.executable, "-c", "import harness"],
    "harness --help": [BIN / "harness", "--help"],
    "asv --help": [BIN / "asv", "--help"],
}


def main() -> None:
    given = options(__doc__, rounds=15)
    arms = {name: functools.partial(took, command) for name, command in COMMANDS.items()}
    for name, times in in_turns(given.rounds, arms).items():
        print(f"{name:18s} {spread([one.wall_s for one in times])}")


if __name__ == "__main__":
    main()
