"""Kill parts of a fleet at random moments, repeat the command, and count what is there.

    python -m tools.fleet_kills --rounds 30

A scheduler and two workers, one with a nanny, measure a suite of small cases into a new results
tree in each round. At a random moment the worker of a machine, the scheduler or the client is
killed, or the client is interrupted as Ctrl-C does; what does not run is started again, and the
command is repeated until all is measured. Then every process must have measured every case exactly
once, each record must name its worker, the lines of records that were there at the kill must be
there, and nothing may measure any more.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from harness.records.store import record_files
from tools.fleet_processes import Fleet, fleet, measured, times

VICTIMS = ("worker", "scheduler", "client", "Ctrl-C")

SUITE = "from harness import Workload, spec\n" + "".join(
    f"""
class Small{number}(Workload):
    sweep = {{"size": [8, 9]}}
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return {number} * x + 1
"""
    for number in (2, 3)
)

CASES, PROCESSES = 4, 2

ENDS = {"worker": (0,), "scheduler": (0, 5), "client": (0, -9), "Ctrl-C": (0, 130, -2)}
"""How the disturbed command may end: it may also be through before. Python ends with -2 where it is
interrupted while it imports."""


def disturb(on: Fleet, tree: Path, victim: str, rng: random.Random, longest_s: float) -> int:
    """Run the command and kill something meanwhile; return how it ended."""
    client = on.run("--effort", f"{PROCESSES}x1", "--results", str(tree), "--wait", "60")
    time.sleep(rng.uniform(0.5, longest_s))
    with contextlib.suppress(psutil.NoSuchProcess):
        if victim in ("client", "Ctrl-C"):
            client.send_signal(signal.SIGKILL if victim == "client" else signal.SIGINT)
        else:
            on.process("scheduler" if victim == "scheduler" else rng.choice(on.machines)).kill()
    while client.poll() is None:
        if victim != "scheduler":
            on.start()
        time.sleep(0.1)
    return client.returncode


def lines(tree: Path) -> set[tuple[Path, bytes]]:
    """Return the whole lines of the records in a tree."""
    whole = [(file, file.read_bytes().rpartition(b"\n")[0]) for file in record_files(tree)]
    return {(file, line) for file, text in whole for line in text.splitlines()}


def complete(on: Fleet, tree: Path) -> int:
    """Repeat the command until all is measured; return how often."""
    for number in range(1, 5):
        on.start()
        on.wait()
        client = on.run("--effort", f"{PROCESSES}x1", "--results", str(tree))
        if client.wait(300) == 0:
            return number
    raise AssertionError(f"not complete in four runs:\n{on.log()}")


def still_measuring(on: Fleet, within_s: float = 10.0) -> int:
    """Return how many processes still measure when that time is over."""
    until = time.monotonic() + within_s
    while (left := on.measuring()) and time.monotonic() < until:
        time.sleep(0.1)
    return len(left)


def campaign(rounds: int, seed: int, longest_s: float, minutes: float) -> Counter[str]:
    """Return what was counted over so many rounds."""
    rng = random.Random(seed)
    counts = Counter[str]({"lost": 0, "twice": 0, "missing": 0, "without a worker": 0})
    counts |= Counter({"left measuring": 0, "left over": 0})
    until = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as scratch, fleet(Path(scratch), {"small": SUITE}) as on:
        on.wait()
        while counts["rounds"] < rounds and time.monotonic() < until:
            tree, victim = on.folder / f"results-{counts['rounds']}", rng.choice(VICTIMS)
            code = disturb(on, tree, victim, rng, longest_s)
            assert code in ENDS[victim], f"{victim}: ended with {code}:\n{on.log()}"
            there = lines(tree)
            counts["left measuring"] += still_measuring(on) if code else 0
            counts["commands repeated"] += complete(on, tree)
            counts["left measuring"] += still_measuring(on)
            often = times(tree)
            counts["lost"] += len(there - lines(tree))
            counts["twice"] += sum(often.values()) - len(often)
            counts["missing"] += CASES * PROCESSES - len(often)
            counts["without a worker"] += sum(r.worker not in on.machines for r in measured(tree))
            counts["records"] += len(often)
            counts["lines of records at the kill"] += len(there)
            counts["rounds"] += 1
            counts[f"{victim} ended the command with {code}"] += 1
            print(f"{counts['rounds']:3d} {victim}: {code}", file=sys.stderr, flush=True)
        counts["left over"] = len(on.stop(60.0))
    return counts


def main() -> int:
    """Run a campaign from the command line and print what was counted."""
    # A shell makes what it runs in the background ignore Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=25.0, help="seconds until a kill")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="at most")
    given = parser.parse_args()
    counts = campaign(given.rounds, given.seed, given.longest, given.minutes)
    for what, count in sorted(counts.items()):
        print(f"{count:6d} {what}")
    wrong = ("lost", "twice", "missing", "without a worker", "left measuring", "left over")
    return int(any(counts[what] for what in wrong))


if __name__ == "__main__":
    sys.exit(main())
