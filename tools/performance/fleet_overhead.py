"""What a fleet of one worker costs over the same sweep on this machine.

    python -m tools.performance.fleet_overhead [--pairs 6] [--units 12] [--cases 40]

Both are `harness run` over the same suite of small cases, whose processes take 5 seconds and more
each, into fresh results trees: once here, once with `--on` a scheduler with one worker on
this machine. They take turns, and who goes first is drawn. The ratio is of the whole wall time of
the commands (target: at most 1.05). Then each command runs once more over its complete tree and
finds nothing to measure: that is what it costs once, however many units there are.
"""

import functools
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

from harness.records.schema import Problems, read_file
from harness.records.store import record_files
from tools.performance.command import HARNESS, in_turns, options, took
from tools.performance.fleet_processes import Fleet, committed, fleet
from tools.performance.paired import paired

TARGET = 1.05
UNIT_S = 5.0

WORKLOAD = """
from harness import Workload, spec


class Sum(Workload):
    sweep = {{"size": list(range(64, {last}))}}
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return (x * x).sum()
"""


def run(on: Fleet, results: Path, effort: str, where: list[str]) -> float:
    """Return the wall time of a sweep in seconds."""
    command = [*HARNESS, "run", "--effort", effort, "--results", results, *where]
    return took(command, cwd=on.project, **on.environment()).wall_s


def measured(results: Path) -> int:
    """Return how many cases a sweep has measured, in all its processes."""
    found = (one for file in record_files(results) for one in read_file(file, Problems()))
    mine = [r for r in found if r.status == "ok" and r.workload == "sums.Sum"]
    return len({(r.axes["size"], r.replicate) for r in mine if "/compute" not in r.replicate})


def main() -> None:
    given = options(__doc__, pairs=6, units=12, cases=40, passes=1, seed=0)
    random.seed(given.seed)
    units, cases = given.units, given.cases  # units: processes of the one workload
    effort = f"{units}x{given.passes}"
    with tempfile.TemporaryDirectory() as scratch, fleet(Path(scratch), ["worker"]) as on:
        committed(on.project, {"sums": WORKLOAD.format(last=64 + cases)})
        on.start()
        on.wait(1)
        sides = {"local": [], "fleet": ["--on", on.address]}

        def of(side: str) -> tuple[float, float]:
            results = Path(tempfile.mkdtemp(dir=on.folder))
            wall_s = run(on, results, effort, sides[side])
            count = measured(results)
            assert count == units * cases, f"{side}: {count} of {units * cases} measured"
            print(f"{side}: {wall_s:.2f} s", file=sys.stderr)
            return wall_s, run(on, results, effort, sides[side])

        found = in_turns(given.pairs, {side: functools.partial(of, side) for side in sides})
    local, fleets = (np.array(found[side]).T for side in sides)
    (wall_s, once_s), (fleet_s, fleet_once_s) = (np.median(one, axis=1) for one in (local, fleets))
    unit_s = (wall_s - once_s) / units
    print(
        f"{units} units of {unit_s:.1f} s ({cases} cases each): local {wall_s:.1f} s, "
        f"fleet {fleet_s:.1f} s"
    )
    if unit_s < UNIT_S:
        print(f"units are shorter than {UNIT_S:.0f} s: ask for more --cases")
    ratio = paired(fleets[0], local[0]).text()
    print(f"fleet over local: {ratio} (target: at most {TARGET - 1:+.0%})")
    print(f"once, whatever is measured: local {once_s:.2f} s, fleet {fleet_once_s:.2f} s")
    print(f"without that: {paired(fleets[0] - fleets[1], local[0] - local[1]).text()}")


if __name__ == "__main__":
    main()
