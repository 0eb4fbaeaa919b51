"""What a fleet of one worker costs over the same sweep on this machine.

    python -m tests.performance.fleet_overhead [--pairs 6] [--units 12] [--cases 40]

Both are `harness run` over the same suite of small cases, whose processes take 5 seconds and more
each, into fresh results trees: once here, once with `--on` a scheduler with one worker on
this machine. They take turns, and who goes first is drawn. The ratio is of the whole wall time of
the commands (target: at most 1.05). Then each command runs once more over its complete tree and
finds nothing to measure: that is what it costs once, however many units there are.
"""

from __future__ import annotations

import functools
import random
import statistics
import sys
import tempfile
from pathlib import Path

from harness.records.schema import Problems, read_file
from harness.records.store import record_files
from tests.performance.command import in_turns, options, took
from tests.performance.fleet_processes import Fleet, committed, fleet
from tests.performance.paired import paired

TARGET = 1.05
UNIT_S = 5.0

WORKLOAD = '''
from harness import Workload, spec


class Sum(Workload):
    """Small cases, many of them."""

    sweep = {{"size": {sizes}}}
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return (x * x).sum()
'''


def run(on: Fleet, results: Path, effort: str, where: list[str]) -> float:
    """Return the wall time of a sweep in seconds."""
    command = [sys.executable, "-m", "harness", "run", "--effort", effort, "--results", results]
    return took([*command, *where], cwd=on.project, env=on.environment()).wall_s


def measured(results: Path) -> int:
    """Return how many cases a sweep has measured, in all its processes."""
    files = record_files(results)
    found = [record for file in files for record in read_file(file, Problems())]
    mine = [r for r in found if r.status == "ok" and r.workload == "sums.Sum"]
    return len({(r.axes["size"], r.replicate) for r in mine if "/compute" not in r.replicate})


def measure(pairs: int, units: int, cases: int, passes: int, seed: int) -> None:
    """Time both in turns and print their ratio."""
    random.seed(seed)
    effort = f"{units}x{passes}"
    with tempfile.TemporaryDirectory() as scratch, fleet(Path(scratch), ["worker"]) as on:
        sizes = [64 + number for number in range(cases)]
        committed(on.project, {"sums": WORKLOAD.format(sizes=sizes)})
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

        found = in_turns(pairs, {side: functools.partial(of, side) for side in sides})
        wall_s = {side: [whole for whole, _ in pair] for side, pair in found.items()}
        fixed_s = {side: [fixed for _, fixed in pair] for side, pair in found.items()}
    once = {side: statistics.median(fixed_s[side]) for side in sides}
    unit_s = (statistics.median(wall_s["local"]) - once["local"]) / units
    print(
        f"{units} units of {unit_s:.1f} s ({cases} cases each): local "
        f"{statistics.median(wall_s['local']):.1f} s, fleet "
        f"{statistics.median(wall_s['fleet']):.1f} s"
    )
    if unit_s < UNIT_S:
        print(f"units are shorter than {UNIT_S:.0f} s: ask for more --cases")
    ratio = paired(wall_s["fleet"], wall_s["local"])
    print(f"fleet over local: {ratio.text()} (target: at most {TARGET - 1:+.0%})")
    print(f"once, whatever is measured: local {once['local']:.2f} s, fleet {once['fleet']:.2f} s")
    less = {
        side: [w - f for w, f in zip(wall_s[side], fixed_s[side], strict=True)] for side in sides
    }
    print(f"without that: {paired(less['fleet'], less['local']).text()}")


def main() -> None:
    """Measure from the command line."""
    # units: processes of the one workload
    measure(**vars(options(__doc__, pairs=6, units=12, cases=40, passes=1, seed=0)))


if __name__ == "__main__":
    main()
