"""Prune, quarantine, pack and unpack beside a program that fills the cache, killed at random.

    python -m tests.cache_kills --rounds 50

In each round JAX compiles new functions into a cache, with a size cap or without, while one of the
commands works on the same directory; in every second round the command is killed. Afterwards each
entry that JAX or `unpack` acknowledged must be there, but for those that `prune` may take (none is
older than it may), each must be readable, and JAX must have seen no error.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.cache.directory import open_directory
from harness.cache.removal import SETTLE_S
from harness.cache.survey import survey
from tests.cache.filled import CAP

WRITER = """
import itertools, json, sys, warnings
import numpy as np
warned = []
warnings.showwarning = lambda message, *rest: warned.append(str(message))
warnings.simplefilter("always")
import jax
from harness.cache.ledger import ledger
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_compilation_cache_max_size", int(sys.argv[2]))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
number = itertools.count(1)
with ledger(sys.argv[3]) as book:
    for line in sys.stdin:
        del book.events[:], warned[:]
        for _ in range(int(line)):
            value = float(next(number)) + float(sys.argv[4])
            jax.block_until_ready(jax.jit(lambda x: x * value - 1)(np.ones(8, np.float32)))
        written = [event.key for event in book.events if event.outcome == "written"]
        print(json.dumps({"written": written, "warned": warned}), flush=True)
"""
FUNCTIONS, OLD_S, LONGEST_ROUND_S = 40, 90 * 86400, 30.0
COMMANDS = ("prune", "doctor", "pack", "unpack")


class Writer:
    """A process that fills a directory when it is asked to."""

    def __init__(self, directory: Path, cap: int, first: int) -> None:
        self.ledger = directory.with_suffix(".jsonl")
        arguments = [str(directory), str(cap), str(self.ledger), str(first)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "JAX_PLATFORMS": "cpu",
                "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",  # no path in a key
            },
        )

    def begin(self) -> None:
        """Have it compile."""
        self._process.stdin.write(f"{FUNCTIONS}\n")
        self._process.stdin.flush()

    def wait(self) -> dict[str, list[str]]:
        """Return which entries it wrote, and what JAX warned of."""
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """Let it go."""
        self._process.stdin.close()
        self._process.wait()


def words_of(command: str, directory: Path, writer: Writer, pack: Path) -> list[str]:
    """Return what a command is called with."""
    return {
        "prune": ["prune", str(directory), "--max-size", "1", "--yes"],
        "doctor": ["doctor", str(directory), "--quarantine", "--no-put-cost"],
        "pack": ["pack", "-o", str(pack.with_name("new.zip")), "--ledger", str(writer.ledger)],
        "unpack": ["unpack", str(pack), str(directory)],
    }[command]


def plant(directory: Path, rng: random.Random) -> tuple[set[str], set[str]]:
    """Make some entries old and some torn; return both, of which a command may take its own."""
    entries = sorted(directory.glob("*-cache"))
    old, torn = set(rng.sample(entries, len(entries) // 4)), set(rng.sample(entries, 3))
    for path in torn:
        path.write_bytes(path.read_bytes()[:100])
    for path in old | torn:
        past = time.time() - OLD_S
        os.utime(path, (past, past))
        used = path.with_name(path.name.removesuffix("-cache") + "-atime")
        if used.exists():
            used.write_bytes(int(past * 1e9).to_bytes(8, "little"))
    return ({path.name.removesuffix("-cache") for path in some} for some in (old, torn))


def is_old(path: Path) -> bool:
    """Whether `prune` may take an entry before this round is over."""
    return time.time() - path.stat().st_mtime > SETTLE_S - LONGEST_ROUND_S


def main() -> None:
    """Do the rounds, and say what was lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    rng = random.Random(given.seed)
    print(f"seed {given.seed}", flush=True)
    lost = torn_left = errors = kills = entries = 0
    with tempfile.TemporaryDirectory(prefix="cache-kills-") as name:
        folder = Path(name)
        writers = {}
        for cap in (-1, CAP * 10):
            directory = folder / f"cache{cap}"
            writers[cap] = directory, Writer(directory, cap, first=100_000 * len(writers))
            writers[cap][1].begin()
        there = {cap: set(writer.wait()["written"]) for cap, (_, writer) in writers.items()}
        pack = folder / "pack.zip"
        packing = ["pack", "-o", str(pack), "--ledger", str(writers[-1][1].ledger)]
        subprocess.run([sys.executable, "-m", "harness", "cache", *packing], check=True)
        packed = set(there[-1])
        for number in range(given.rounds):
            cap = rng.choice(list(writers))
            directory, writer = writers[cap]
            command = rng.choice(COMMANDS)
            names = [path for path in directory.glob("*-cache") if is_old(path)]
            aged = {path.name.removesuffix("-cache") for path in names}
            old, torn = plant(directory, rng)
            there[cap] -= torn
            writer.begin()
            running = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "harness",
                    "cache",
                    *words_of(command, directory, writer, pack),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if killed := number % 2 == 1:
                time.sleep(rng.uniform(0.3, 1.2))
                running.kill()
            said, _ = running.communicate()
            told = writer.wait()
            kills += killed
            if not killed and running.returncode not in (0, 1, 5, 6):
                errors += 1
                print(f"round {number}: {command}: {said}")
            there[cap] |= set(told["written"])
            if command == "unpack" and not killed:
                there[cap] |= packed
            present = {
                entry.name: entry for entry in survey(open_directory(str(directory))).entries
            }
            may_go = old | aged if command == "prune" else set()
            missing = there[cap] - set(present) - may_go
            bad = {n for n, e in present.items() if e.contents.state != "readable"} - torn
            problems = [text for text in told["warned"] if "persistent" in text.lower()]
            lost, torn_left, errors = (
                lost + len(missing),
                torn_left + len(bad),
                errors + len(problems),
            )
            there[cap] = {name for name in present if name not in torn | bad}
            entries += len(told["written"])
            for path in directory.glob("*-cache"):  # JAX never heals a torn one: out of the way
                if path.name.removesuffix("-cache") in torn:
                    path.unlink()
                    path.with_name(path.name.removesuffix("-cache") + "-atime").unlink(
                        missing_ok=True
                    )
            if missing or bad or problems:
                print(f"round {number}: {command}, cap {cap}, killed {killed}: ", end="")
                print(f"lost {missing}, torn {bad}, {problems[:1]}", flush=True)
        for _, writer in writers.values():
            writer.end()
    print(
        f"{given.rounds} rounds, {kills} kills, {entries} entries written beside them: {lost} "
        f"healthy entries lost, {torn_left} torn ones left, {errors} errors"
    )
    raise SystemExit(bool(lost or torn_left or errors))


if __name__ == "__main__":
    main()
