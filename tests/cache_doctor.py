"""What `harness cache doctor` finds of what is planted, and what it says of healthy directories.

    python -m tests.cache_doctor [healthy] [planted] [quarantine] [--other PYTHON] [--rounds 50]

Fills a directory of every kind of tests/cache/healthy.py, and one of two releases for each further
Python, and looks at them: whatever is called worse than a note is a false alarm. Plants each
ailment of tests/cache/planted.py in three kinds. Then a process writes and is killed, again and
again, while doctors move bad entries aside. Only root can plant owners.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from harness.cache.directory import open_directory
from harness.cache.entry import read_contents
from harness.cache.survey import survey
from harness.watch import jax_names
from tests import forks
from tests.cache import healthy
from tests.cache.healthy import CAPPED, KINDS, THREE, Healthy
from tests.cache.planted import EARLY, MOVED, PLANTS, plant

BASES = (
    Healthy("plain"),
    Healthy("with a size cap", settings=CAPPED),
    Healthy("with others", THREE + "\n" + healthy.THREADS, healthy.ALL, healthy._strangers),
)
"""Where ailments are planted."""

WRITER = """
import itertools, pathlib, time
whole = pathlib.Path.write_bytes
def slowly(path, data):
    with open(path, "wb") as file:  # a slow disk
        for start in range(0, len(data), 200):
            file.write(data[start:start + 200])
            file.flush()
            time.sleep(0.005)
pathlib.Path.write_bytes = slowly
for number in itertools.count(time.time_ns() % 10**6):  # exact in 32 bits
    jax.jit(lambda x: x @ x + number)(x)
"""


def look(cache: Path, *words: str) -> dict[str, Any]:
    """Return what the doctor says of a directory, with every entry loaded."""
    more = ("--load", "--no-put-cost", "--json")
    done = forks.harness("cache", "doctor", cache, *more, *words)
    if done.returncode not in (0, 1, 5):
        raise AssertionError(f"{cache}: {done.returncode}\n{done.stderr}")
    return dict(json.loads(done.stdout))


def alarms(told: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the findings that are more than a note: the kind, and what was seen.

    An entry without a time of use does ail jax 0.10.2, which cannot write under a cap beside it.
    """
    every = told["diagnosis"]["findings"]
    known = "orphaned" if EARLY else ""
    found = [one for one in every if one["severity"] != "note" and one["kind"] != known]
    return [(one["kind"], one["evidence"]) for one in found]


def look_at_healthy(folder: Path, others: list[str]) -> Counter[str]:
    """Fill a directory of each kind, look at it, and count false alarms."""
    kinds = list(KINDS)
    for python in others:

        def also(cache: Path, python: str = python) -> None:
            healthy.fill(cache, THREE, python)

        kinds.append(Healthy(f"two releases, with {python}", then=also))
    counts: Counter[str] = Counter()
    busy = Healthy("being written")
    for number, kind in enumerate([*kinds, busy]):
        place = folder / f"healthy{number}"
        place.mkdir(mode=0o755)
        cache = kind.make(place)
        if kind is busy:
            with healthy.being_written(cache, WRITER):
                time.sleep(1)
                told = look(cache, "--quarantine")
        else:
            before = sorted(cache.iterdir())
            told = look(cache, "--quarantine")
            counts["files changed"] += sorted(cache.iterdir()) != before
        counts["healthy directories"] += 1
        counts["entries in them"] += len(list(cache.glob("*-cache")))
        for which, evidence in alarms(told):
            counts["false alarms"] += 1
            print(f"false alarm, {kind.name}: {which}: {evidence}", flush=True)
        moved = told["moved"]["names"]
        counts["false alarms that move a file"] += len(moved)
        if moved:
            print(f"moved, {kind.name}: {moved}", flush=True)
        shutil.rmtree(place)
    return counts


def look_at_planted(folder: Path) -> Counter[str]:
    """Plant each ailment in each kind of directory, and count what is found."""
    counts: Counter[str] = Counter()
    originals = folder / "originals"
    for number, base in enumerate(BASES):
        (originals / f"{number}").mkdir(parents=True)
        base.make(originals / f"{number}")
    for number, base in enumerate(BASES):
        for one in PLANTS:
            place = folder / "planted"
            shutil.copytree(originals / f"{number}", place, symlinks=True)
            cache = place / "cache"
            entry = plant(one, cache)
            told = look(cache, "--quarantine")
            counts["planted"] += 1
            label = f"{one.name}, {base.name}"
            findings = told["diagnosis"]["findings"]
            mine = [
                f
                for f in findings
                if f["kind"] == one.kind and (one.whole or entry in f["entries"])
            ]
            if not mine or (mine[0]["severity"] == "note") != one.note:
                counts["missed"] += 1
                print(f"missed, {label}: {alarms(told)}", flush=True)
            else:
                counts["found"] += 1
            swapped = 2 if one.name == "two programs swapped" else 1
            moved, due = told["moved"]["names"], one.kind in MOVED and not one.note
            if len(moved) != swapped * due or (due and entry not in moved):
                counts["moved wrongly"] += 1
                print(f"moved wrongly, {label}: {moved}", flush=True)
            for kind in {kind for kind, _ in alarms(told)} - {one.kind}:
                counts["false alarms beside"] += 1
                print(f"false alarm, {label}: {kind}", flush=True)
            shutil.rmtree(place)
    return counts


def quarantine_beside(folder: Path, rounds: int, rng: random.Random) -> Counter[str]:
    """Kill a writer again and again while doctors move what is bad; count what is lost or left."""
    caches = {folder / "written": {}, folder / "written with a cap": CAPPED}
    whole: dict[Path, set[str]] = {cache: set() for cache in caches}
    counts: Counter[str] = Counter()

    def states(cache: Path) -> dict[str, str]:
        return {e.name: e.contents.state for e in survey(open_directory(str(cache))).entries}

    def mend(cache: Path) -> None:
        words = ("--quarantine", "--no-put-cost", "--settle", "1")
        forks.harness("cache", "doctor", cache, *words)

    for number in range(rounds):
        cache, settings = list(caches.items())[number % 2]
        with healthy.being_written(cache, WRITER, **settings):
            until = time.monotonic() + rng.uniform(1.0, 2.5)
            while time.monotonic() < until:
                if cache.exists():
                    mend(cache)
                time.sleep(0.05)
        now = {name for name, state in states(cache).items() if state == "readable"}
        counts["rounds"] += 1
        counts["torn by a kill"] += len(states(cache)) - len(now)
        counts["healthy entries lost"] += len(whole[cache] - now)
        whole[cache] |= now
    time.sleep(1.1)
    for cache in caches:
        mend(cache)
        left = states(cache)
        counts["torn ones left"] += sum(state != "readable" for state in left.values())
        counts["entries written"] += len(left)
        for moved in cache.glob("quarantine-*/*-cache"):
            with moved.open("rb") as file:
                counts["healthy entries moved"] += read_contents(file).state == "readable"
            counts["moved aside"] += 1
    return counts


COUNTED = {
    "healthy": {
        "healthy directories": None,
        "entries in them": None,
        "false alarms": None,
        "false alarms that move a file": 0,
        "files changed": 0,
    },
    "planted": {
        "planted": None,
        "found": None,
        "missed": 2,
        "moved wrongly": 0,
        "false alarms beside": None,
    },
    "quarantine": {
        "rounds": None,
        "entries written": None,
        "torn by a kill": None,
        "moved aside": None,
        "healthy entries moved": 0,
        "healthy entries lost": 0,
        "torn ones left": 0,
    },
}
"""What is printed of each part, and how many of it there may be."""


def main() -> int:
    """Run the parts that are asked for, and print what was counted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", default=list(COUNTED), metavar="PART")
    parser.add_argument("--other", action="append", default=[], metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="harness-doctor-") as name, forks.server() as address:
        folder = Path(name)
        with forks.forking(address):
            if "healthy" in options.parts:
                counts += look_at_healthy(folder, options.other)
            if "planted" in options.parts:
                counts += look_at_planted(folder)
            if "quarantine" in options.parts:
                counts += quarantine_beside(folder, options.rounds, random.Random(0))
    print(f"jax {jax_names.version()}")
    wrong = False
    for part in options.parts:
        for what, most in COUNTED[part].items():
            print(f"{counts[what]:6d} {what}")
            wrong |= most is not None and counts[what] > most
    return wrong


if __name__ == "__main__":
    sys.exit(main())
