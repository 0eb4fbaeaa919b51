"""What `harness cache doctor` finds of what is planted, and what it says of healthy directories.

    python -m tools.cache_doctor [healthy] [planted] [quarantine] [--other PYTHON] [--rounds 50]

Fills a directory of every kind of tools/cache_healthy.py, and one of two releases for each further
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
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from harness.cache.directory import open_directory
from harness.cache.entry import read_contents
from harness.cache.survey import survey
from harness.watch import jax_names
from tests import forks
from tests.cache.planted import EARLY, MOVED, PLANTS, plant
from tools import cache_healthy as healthy
from tools.cache_healthy import CAPPED, KINDS, THREE, Healthy

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
    more = ("--load", "--no-put-cost", "--format=json")
    done = forks.harness("cache", "doctor", cache, *more, *words)
    if done.returncode not in (0, 1, 5):
        raise AssertionError(f"{cache}: {done.returncode}\n{done.stderr}")
    return dict(json.loads(done.stdout))


def alarms(told: dict[str, Any]) -> set[str]:
    """Return the kinds of findings that are more than a note.

    An entry without a time of use does ail jax 0.10.2, which cannot write under a cap beside it.
    """
    every = told["diagnosis"]["findings"]
    known = "orphaned" if EARLY else ""
    return {f["kind"] for f in every if f["severity"] != "note" and f["kind"] != known}


def look_at_healthy(folder: Path, others: list[str]) -> Iterator[tuple[str, int, str]]:
    """Fill a directory of each kind, look at it, and yield what is counted, and of what."""
    kinds = [
        Healthy(
            f"two releases, with {each}", then=partial(healthy.fill, program=THREE, python=each)
        )
        for each in others
    ]
    busy = Healthy("being written")
    for kind in (*KINDS, *kinds, busy):
        place = folder / "healthy"
        place.mkdir(mode=0o755)
        cache = kind.make(place)
        writing = healthy.being_written(cache, WRITER) if kind is busy else nullcontext()
        with writing:
            time.sleep(kind is busy)
            before = sorted(cache.iterdir())
            told = look(cache, "--quarantine")
            changed = kind is not busy and sorted(cache.iterdir()) != before
        yield "healthy directories", 1, ""
        yield "entries in them", len(list(cache.glob("*-cache"))), ""
        yield "false alarms", len(found := alarms(told)), f"{kind.name}: {found}"
        moved = told["moved"]["names"]
        yield "false alarms that move a file", len(moved), f"{kind.name}: {moved}"
        yield "files changed", changed, kind.name
        shutil.rmtree(place)


def look_at_planted(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Plant each ailment in each kind of directory, and yield what is counted, and of what."""
    for number, base in enumerate(BASES):
        original, place = folder / f"original{number}", folder / "planted"
        original.mkdir()
        base.make(original)
        for one in PLANTS:
            shutil.copytree(original, place, symlinks=True)
            entry = plant(one, place / "cache")
            told = look(place / "cache", "--quarantine")
            seen = [(f["kind"], f["evidence"]) for f in told["diagnosis"]["findings"]]
            label = f"{one.name}, {base.name}: {seen}"
            mine = [f for f in told["diagnosis"]["findings"] if f["kind"] == one.kind]
            here = [f["severity"] for f in mine if one.whole or entry in f["entries"]]
            found = here[:1] == [one.severity]
            yield "planted", 1, ""
            yield "found", found, ""
            yield "missed", not found, label
            moved, due = told["moved"]["names"], one.kind in MOVED and one.severity != "note"
            wrong = len(moved) != one.entries * due or (due and entry not in moved)
            yield "moved wrongly", wrong, f"{label}: {moved}"
            yield "false alarms beside", len(alarms(told) - {one.kind}), label
            shutil.rmtree(place)


def quarantine_beside(folder: Path, rounds: int) -> Iterator[tuple[str, int, str]]:
    """Kill a writer again and again while doctors move what is bad; yield what is lost or left."""
    rng = random.Random(0)
    caches = {folder / "written": {}, folder / "written with a cap": CAPPED}
    whole: dict[Path, set[str]] = {cache: set() for cache in caches}

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
        every = states(cache)
        now = {name for name, state in every.items() if state == "readable"}
        yield "rounds", 1, ""
        yield "torn by a kill", len(every) - len(now), ""
        yield "healthy entries lost", len(whole[cache] - now), ""
        whole[cache] |= now
    time.sleep(1.1)
    for cache in caches:
        mend(cache)
        left = states(cache)
        yield "torn ones left", sum(state != "readable" for state in left.values()), ""
        yield "entries written", len(left), ""
        for moved in cache.glob("quarantine-*/*-cache"):
            with moved.open("rb") as file:
                healthy_one = read_contents(file).state == "readable"
            yield "healthy entries moved", healthy_one, moved.name
            yield "moved aside", 1, ""


COUNTED = {
    "healthy": "healthy directories; entries in them; false alarms; "
    "false alarms that move a file: 0; files changed: 0",
    "planted": "planted; found; missed: 2; moved wrongly: 0; false alarms beside",
    "quarantine": "rounds; entries written; torn by a kill; moved aside; "
    "healthy entries moved: 0; healthy entries lost: 0; torn ones left: 0",
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
    with (
        tempfile.TemporaryDirectory(prefix="harness-doctor-") as name,
        forks.server() as address,
        forks.forking(address),
    ):
        folder = Path(name)
        parts = {
            "healthy": look_at_healthy(folder, options.other),
            "planted": look_at_planted(folder),
            "quarantine": quarantine_beside(folder, options.rounds),
        }
        for part in options.parts:
            for what, number, of in parts[part]:
                counts[what] += number
                if number and of:
                    print(f"{what}: {of}", flush=True)
    print(f"jax {jax_names.version()}")
    wrong = False
    for part in options.parts:
        for counted in COUNTED[part].split("; "):
            what, _, most = counted.partition(": ")
            print(f"{counts[what]:6d} {what}")
            wrong |= most != "" and counts[what] > int(most)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
