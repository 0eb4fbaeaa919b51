"""Kill a sweep at random moments, again and again, and hold what is left against a whole one.

    python -m tests.engine.kills --rounds 50

Each round starts or resumes the same sweep and kills, at a random moment, the measuring process or
its parent (SIGKILL), the sweep itself (SIGKILL) or interrupts it as Ctrl-C does (SIGINT). After
each kill every record that was there before must still be there and readable; at the end one more
run completes the sweep, and its frame must have the keys of a sweep that was never disturbed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from harness.frame.load import everything
from harness.records.schema import Problems, read_file
from harness.records.store import record_files
from tests import forks
from tests.sweeps import SUITES

KEYS = ["workload", "size", "transform", "target", "stage", "unit", "status", "n_processes"]


def command(results: Path, effort: str) -> list[str]:
    """Return the command line of the sweep."""
    return [
        *(sys.executable, "-m", "harness", "run", "Printing|Scale", "--effort", effort),
        *("--benchmarks", str(SUITES / "troubled"), "--results", str(results)),
        *("--machine", "tested"),
    ]


def kept(results: Path) -> tuple[set[tuple[str, str]], Problems]:
    """Return what can be read from a results tree: the key and replicate of every record."""
    problems = Problems()
    found = {
        (record.key, record.replicate)
        for file in record_files(results)
        for record in read_file(file, problems)
        if record.status == "ok"
    }
    return found, problems


def disturb(results: Path, effort: str, rng: random.Random, longest_s: float) -> str:
    """Run the sweep, kill something in it, and return what was killed."""
    with tempfile.TemporaryFile() as said:
        # Not forked, so that its measuring processes are its children.
        variables = {name: text for name, text in os.environ.items() if name != forks.ADDRESS}
        running = subprocess.Popen(
            command(results, effort), stdout=said, stderr=said, env=variables
        )
        time.sleep(rng.uniform(0.2, longest_s))
        if running.poll() is not None:
            said.seek(0)
            text = said.read().decode()
            raise AssertionError(f"the sweep ended by itself with {running.returncode}:\n{text}")
    victim = rng.choice(["worker", "parent", "sweep", "interrupt"])
    if victim in ("worker", "parent"):
        below = psutil.Process(running.pid).children(recursive=True)
        of_parents = [one for one in below if one.ppid() != running.pid]
        for one in (of_parents or below) if victim == "worker" else below[:1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        time.sleep(rng.uniform(0.5, 2.0))  # it goes on with another process, until it is stopped
    while running.poll() is None:
        running.send_signal(signal.SIGKILL if victim == "sweep" else signal.SIGINT)
        # Some library that is being imported may swallow a Ctrl-C: a user presses it again.
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(timeout=5)
    return victim


def campaign(
    rounds: int, seed: int, effort: str = "100x1", longest_s: float = 2.5
) -> dict[str, int]:
    """Disturb a sweep `rounds` times, then complete it; return what happened, counted.

    Raises:
        AssertionError: a record was lost, or the final frame has other keys.
    """
    rng = random.Random(seed)
    # A shell makes what it runs in the background ignore Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "disturbed"
        before: set[tuple[str, str]] = set()
        for number in range(rounds):
            victim = disturb(results, effort, rng, longest_s)
            counts[victim] = counts.get(victim, 0) + 1
            after, problems = kept(results)
            assert before <= after, f"round {number}, {victim}: {before - after} lost"
            counts["torn or corrupt lines"] = problems.torn + problems.corrupt
            before = after
        counts["records before the last run"] = len(before)
        subprocess.run(command(results, effort), check=True, capture_output=True)
        undisturbed = Path(folder) / "undisturbed"
        subprocess.run(command(undisturbed, effort), check=True, capture_output=True)
        frames = []
        for tree in (results, undisturbed):
            frame = everything(tree)
            frames.append(frame[frame["workload"] == "small.Scale"][KEYS].reset_index(drop=True))
        assert frames[0].equals(frames[1]), f"{frames[0]}\n{frames[1]}"
        counts["rows in the final frame"] = len(frames[0])
    return counts


def main() -> None:
    """Run a campaign from the command line and print what happened."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for what, count in campaign(options.rounds, options.seed).items():
        print(f"{count:6d} {what}")
    print("No finished record was lost; the final frame has the keys of an undisturbed one.")


if __name__ == "__main__":
    main()
