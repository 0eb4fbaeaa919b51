"""Kill commands of every kind at random moments, and judge what is left after the next command.

    python -m tools.kills --minutes 10
    python -m tools.kills --count 1000 --minutes 120

Each round starts a command in a project of its own and kills it at a random moment (SIGKILL): the
command, its process group, one of the processes below it, or all of them at once; or presses Ctrl-C
until it has ended. The bytes of all whole lines of records that are there then must be there at
every later look, in their place. After a few kills the next command runs to its end; then no
process, no temporary folder, no worktree, no shared memory and no half-written file may be left,
and `harness doctor` must find no damaged line.

Temporary folders of asv's own stay where they are killed, and are counted apart. A sweep on the
workers of a scheduler has `python -m tools.fleet_kills`.
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
from collections import Counter
from pathlib import Path

import psutil

from harness.frame.load import damage
from harness.records.store import record_files
from tests import started
from tools.interrupts import PROGRAM
from tools.left_over import Place

HARNESS, ASV = ("-m", "harness"), ("-m", "asv")
NIGHTLY = ("nightly", "--night", "{night}")
SHORT = PROGRAM.replace("60", "3")
COMMANDS: dict[str, tuple[str, ...]] = {
    "run here": (*HARNESS, "run", "--effort", "40x1", "--fresh"),
    "aa": (*HARNESS, "aa", "--pairs", "2", "--effort", "6x1"),
    "asv run": (*ASV, "run", "--machine", "tested", "--show-stderr", "HEAD^!"),
    "asv continuous": (*ASV, "continuous", "--machine", "tested", "HEAD~1", "HEAD"),
    "nightly": (*HARNESS, *NIGHTLY, "--effort", "20x1"),
    "compare live": (*HARNESS, "compare", "--live", "HEAD~1", "HEAD", "--effort", "8x1"),
    "profile": (*HARNESS, "profile", "-o", "{new}", "--", "-c", SHORT),
    "cache ledger": (*HARNESS, "cache", "ledger", "-o", "l.jsonl", "--", "-c", SHORT),
    "ir of a commit": (*HARNESS, "ir", "Scale", "--diff", "commit:HEAD~1"),
    "compile": (*HARNESS, "compile", "Scale"),
}
NEXT = (*HARNESS, "run", "--effort", "1x1")
WAYS = ("command", "group", "a process below", "everything", "Ctrl-C")

KILLS_A_LOOK = 6
"""After so many kills, and after the last, the next command runs, and what is left is judged."""

END_S = 10.0
"""Processes below a command that was killed may take so long to end."""


class Ledger:
    """The records that were ever seen whole, byte for byte."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self._seen: dict[Path, bytes] = {}

    def look(self) -> list[str]:
        """Remember what is there; return what is not any more, or is another."""
        now = {file: file.read_bytes() for file in record_files(self.results)}
        whole = {file: text[: text.rfind(b"\n") + 1] for file, text in now.items()}
        lost = [
            str(file)
            for file, text in self._seen.items()
            if not now.get(file, b"").startswith(text)
        ]
        self._seen = whole
        return lost

    @property
    def size(self) -> int:
        """Bytes that are held against what is there."""
        return sum(map(len, self._seen.values()))


def disturb(place: Place, name: str, rng: random.Random, number: int, within_s: float) -> str:
    """Start a command and kill something of it; return what, or `ended before`."""
    night = f"night-{number // (3 * len(COMMANDS))}"  # some are gone on with
    parts = {"new": f"new-{number}", "night": night}
    words = [word.format(**parts) for word in COMMANDS[name]]
    running = place.start(*words, process_group=0)
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.wait(rng.uniform(0.1, within_s))
        return "ended before"
    way = rng.choice(WAYS)
    below = psutil.Process(running.pid).children(recursive=True)
    if way == "a process below" and below:
        with contextlib.suppress(psutil.NoSuchProcess):
            rng.choice(below).kill()
        time.sleep(rng.uniform(0.0, 0.5))
    elif way == "everything":
        for one in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
    while way == "Ctrl-C" and running.poll() is None:
        running.send_signal(signal.SIGINT)
        # A library that is being imported may swallow it: a user presses it again.
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(5)
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if way == "group" else os.kill)(running.pid, signal.SIGKILL)
    running.wait()
    return way


def settled(place: Place) -> bool:
    """Wait until no process is left of a killed command; return whether that came."""
    deadline = time.monotonic() + END_S
    while started.of(place.token):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def judged(place: Place) -> tuple[list[str], int]:
    """Run the next command; return what is wrong afterwards, and how many folders others left."""
    done = place.run(*NEXT)
    wrong = [] if done.returncode == 0 else [f"the next command: {done.returncode} {done.stderr}"]
    wrong += place.left(but=of_others)
    _, damaged = damage(place.results)
    # A line that a killed writer has torn is what it looks like: none was acknowledged.
    wrong += [str(one) for one in damaged if one.kind != "torn"]
    return wrong, sum(of_others(f"folder {one.name}") for one in place.scratch.iterdir())


def of_others(left: str) -> bool:
    """Tell whether something that is left is a temporary folder of asv's own."""
    return left.startswith("folder ") and "harness" not in left


def campaign(
    count: int, minutes: float, seed: int, longest_s: float = 3.0, only: str = ""
) -> Counter[str]:
    """Kill until there are `count` kills, or the time is over; return what came of it."""
    rng = random.Random(seed)
    names = [name for name in COMMANDS if only in name]
    counts: Counter[str] = Counter()
    until = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder)) as place:
        records = Ledger(place.results)
        number, since, took_s = 0, list[str](), dict[str, float]()
        while counts["kills"] < count and time.monotonic() < until:
            name = names[number % len(names)]
            number += 1
            began = time.monotonic()
            within_s = min(longest_s, took_s.get(name, longest_s))
            way = disturb(place, name, rng, number, within_s)
            if way == "ended before":
                counts[way] += 1
                took_s[name] = time.monotonic() - began
                continue
            counts["kills"] += 1
            counts[f"kills of {name}"] += 1
            since.append(f"{name} ({way})")
            wrong = [] if settled(place) else ["processes are left"]
            wrong += [f"records lost: {one}" for one in records.look()]
            look = len(since) == KILLS_A_LOOK or counts["kills"] == count
            if look:
                more, of_others = judged(place)
                wrong += [*more, *(f"records lost: {one}" for one in records.look())]
                counts["looks after the next command"] += 1
                counts["folders of asv's own"] += of_others
            if wrong:
                counts["wrong"] += 1
                print(f"#{number} {', '.join(since)}: {wrong}"[:2000], flush=True)
            if wrong or look:
                since.clear()
                place.tidy()
        counts["bytes of records held against"] = records.size
    return counts


def main() -> int:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="kills")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--longest", type=float, default=3.0, help="seconds until a kill")
    parser.add_argument("--only", default="", help="commands whose name holds this")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    counts = campaign(given.count, given.minutes, given.seed, given.longest, given.only)
    for what, count in counts.items():
        print(f"{count:7d} {what}")
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
