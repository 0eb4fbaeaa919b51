"""Prune, quarantine, pack and unpack beside a program that fills the cache, killed at random.

    python -m tools.cache_kills --rounds 50

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
from collections import Counter
from pathlib import Path

from harness.cache.directory import open_directory
from harness.cache.removal import SETTLE_S
from harness.cache.survey import survey
from tests.cache.filled import CAP, START, WARNED, environment

WRITER = """
import itertools
from harness.cache.ledger import ledger
number = itertools.count(int(sys.argv[2]))
with ledger(sys.argv[1]) as book:
    for line in sys.stdin:
        del book.events[:], warned[:]
        for _ in range(int(line)):
            value = float(next(number))
            jax.block_until_ready(jax.jit(lambda x: x * value - 1)(x[0]))
        written = [event.key for event in book.events if event.outcome == "written"]
        print(json.dumps({"written": written, "warned": warned}), flush=True)
"""
FUNCTIONS, OLD_S, LONGEST_ROUND_S = 40, 90 * 86400, 30.0
HARNESS = sys.executable, "-m", "harness", "cache"


class Writer:
    """A process that fills a directory when it is asked to, and the entries that are then there."""

    def __init__(self, directory: Path, cap: int, first: int) -> None:
        self.directory, self.cap = directory, cap
        self.ledger = directory.with_suffix(".jsonl")
        self.there: set[str] = set()
        settings = {
            "JAX_COMPILATION_CACHE_MAX_SIZE": str(cap),
            "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",  # no path in a key
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", START + WARNED + WRITER, str(self.ledger), str(first)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(directory, **settings),
        )

    def begin(self) -> None:
        """Have it compile."""
        print(FUNCTIONS, file=self.process.stdin, flush=True)

    def wait(self) -> dict[str, list[str]]:
        """Return which entries it wrote, and what JAX warned of."""
        told = json.loads(self.process.stdout.readline())
        self.there |= set(told["written"])
        return told


def words_of(command: str, writer: Writer, pack: Path) -> tuple[str, ...]:
    """Return what a command is called with."""
    directory = str(writer.directory)
    return {
        "prune": ("prune", directory, "--max-size", "1", "--yes"),
        "doctor": ("doctor", directory, "--quarantine", "--no-put-cost"),
        "pack": ("pack", "-o", f"{pack}.new", "--ledger", str(writer.ledger)),
        "unpack": ("unpack", str(pack), directory),
    }[command]


def names(paths: list[Path]) -> set[str]:
    """Return the names of entries, by their files."""
    return {path.name.removesuffix("-cache") for path in paths}


def plant(entries: list[Path], rng: random.Random) -> tuple[list[Path], list[Path]]:
    """Make some entries old and some torn; return both, of which a command may take its own."""
    old, torn = rng.sample(entries, len(entries) // 4), rng.sample(entries, 3)
    for path in torn:
        path.write_bytes(path.read_bytes()[:100])
    past = time.time() - OLD_S
    for path in (*old, *torn):
        os.utime(path, (past, past))
        used = path.with_name(path.name.removesuffix("-cache") + "-atime")
        if used.exists():
            used.write_bytes(int(past * 1e9).to_bytes(8, "little"))
    return old, torn


def disturb(
    number: int, command: str, writer: Writer, pack: Path, packed: set[str], rng: random.Random
) -> Counter[str]:
    """Run a command while a program fills the directory, and count what is wrong then."""
    entries = sorted(writer.directory.glob("*-cache"))
    youngest_s = time.time() - SETTLE_S + LONGEST_ROUND_S  # `prune` may take older ones
    aged = [path for path in entries if path.stat().st_mtime < youngest_s]
    old, torn = plant(entries, rng)
    writer.there -= names(torn)
    writer.begin()
    running = subprocess.Popen(
        [*HARNESS, *words_of(command, writer, pack)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if killed := number % 2 == 1:
        time.sleep(rng.uniform(0.3, 1.2))
        running.kill()
    said, _ = running.communicate()
    told = writer.wait()
    if command == "unpack" and not killed:
        writer.there |= packed
    found = survey(open_directory(str(writer.directory))).entries
    states = {entry.name: entry.contents.state for entry in found}
    bad = {name for name, state in states.items() if state != "readable"} - names(torn)
    missing = writer.there - set(states) - (names(old + aged) if command == "prune" else set())
    problems = [text for text in told["warned"] if "persistent" in text.lower()]
    if not killed and running.returncode not in (0, 1, 5, 6):
        problems.append(said)
    if missing or bad or problems:
        print(f"round {number}: {command}, cap {writer.cap}, killed {killed}: ", end="")
        print(f"lost {missing}, torn {bad}, {problems[:1]}", flush=True)
    writer.there = set(states) - bad - names(torn)
    for path in torn:  # JAX never heals a torn one: out of the way
        path.unlink(missing_ok=True)
        path.with_name(path.name.removesuffix("-cache") + "-atime").unlink(missing_ok=True)
    return Counter(
        kills=killed,
        entries=len(told["written"]),
        lost=len(missing),
        torn=len(bad),
        errors=len(problems),
    )


def main() -> None:
    """Do the rounds, and say what was lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    rng, counts = random.Random(given.seed), Counter[str]()
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="cache-kills-") as name:
        pack = Path(name) / "pack.zip"
        caps = -1, CAP * 10
        writers = [Writer(Path(name, f"cache{n}"), cap, n * 100_000) for n, cap in enumerate(caps)]
        for writer in writers:
            writer.begin()
            writer.wait()
        packing = "pack", "-o", str(pack), "--ledger", str(writers[0].ledger)
        subprocess.run([*HARNESS, *packing], check=True)
        packed = set(writers[0].there)
        for number in range(given.rounds):
            command = rng.choice(("prune", "doctor", "pack", "unpack"))
            counts += disturb(number, command, rng.choice(writers), pack, packed, rng)
        for writer in writers:
            writer.process.communicate()
    print(
        f"{given.rounds} rounds, {counts['kills']} kills, {counts['entries']} entries written "
        f"beside them: {counts['lost']} healthy entries lost, {counts['torn']} torn ones left, "
        f"{counts['errors']} errors"
    )
    raise SystemExit(bool(counts["lost"] or counts["torn"] or counts["errors"]))


if __name__ == "__main__":
    main()
