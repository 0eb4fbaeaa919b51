"""What `harness cache doctor` finds of what is planted, and what it says of healthy directories.

    python -m tools.cache_doctor [healthy] [planted] [kills] [beside] [--other PYTHON] [--rounds N]
    python -m tools.cache_doctor --list > tools/cache_states.csv

`healthy` fills a directory of every kind of tools/cache_healthy.py by real JAX, and looks at each:
whatever is worse than a note is a false alarm. `planted` puts each problem of
tests/cache/planted.py into directories of 5 to 2,000 entries. What both are to find is listed in
tools/cache_states.csv, which was written before any of it was run. `kills` kills repairs at random,
and looks for healthy entries that are gone; `beside` kills a program that writes while doctors
repair. Only root can plant owners.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from harness.cache import doctor
from harness.cache.directory import open_directory
from harness.cache.entry import read_contents
from harness.cache.here import settings
from harness.cache.loads import load
from harness.cache.repair import repair
from harness.cache.survey import survey
from harness.jaxhooks import jax_names
from tests import forks
from tests.cache.filled import CAP, backdate
from tests.cache.planted import EARLY, MOVED, PLANTS, plant
from tools import cache_healthy as healthy
from tools.cache_healthy import CAPPED, KINDS, THREE, Healthy

STATES = Path(__file__).with_name("cache_states.csv")
PLANTED, SEED = 200, 20261128
FEWEST, MOST = 5, 2000

BASES = {
    "plain": Healthy("plain", THREE),
    "capped": Healthy("with a size cap", THREE, CAPPED),
    "mixed": Healthy(
        "with others", THREE + "\n" + healthy.THREADS, healthy.ALL, healthy._strangers
    ),
}
"""Where problems are planted."""

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


def listed() -> Iterator[tuple[str, ...]]:
    """Yield each state with its answer: part, name, base, entries, check, severity."""
    yield "part", "name", "base", "entries", "check", "severity"
    for kind in KINDS:
        yield "healthy", kind.name, "", "", "", ""
    rng = random.Random(SEED)
    for number in range(PLANTED):
        one = PLANTS[number % len(PLANTS)]
        base = rng.choice(list(BASES))
        entries = round(FEWEST * (MOST / FEWEST) ** rng.random())
        severity = "problem or note" if one.check == "orphaned" else one.severity
        yield "planted", one.name, base, str(entries), one.check, severity


def states(part: str) -> list[dict[str, str]]:
    """Return the committed states of a part."""
    with STATES.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["part"] == part]


def look(cache: Path, *words: str) -> dict[str, Any]:
    """Return what the doctor says of a directory, with every entry loaded."""
    more = ("--load", "--no-put-cost", "--format=json")
    done = forks.harness("cache", "doctor", cache, *more, *words)
    if done.returncode not in (0, 1, 5):
        raise AssertionError(f"{cache}: {done.returncode}\n{done.stderr}")
    return dict(json.loads(done.stdout))


def alarms(seen: dict[str, Any]) -> set[str]:
    """Return the checks that found a problem; what may still be written is none.

    An entry without a time of use is a problem of jax 0.10.2, which cannot write beside it.
    """
    expected = "orphaned" if EARLY else ""
    findings = [f for f in seen["findings"] if f["severity"] in ("problem", "unusable")]
    return {f["check"] for f in findings if f["check"] != expected}


def look_at_healthy(folder: Path, others: list[str]) -> Iterator[tuple[str, int, str]]:
    """Fill a directory of each kind, look at it, and yield what is counted, and of what."""
    missing = {row["name"] for row in states("healthy")} ^ {kind.name for kind in KINDS}
    if missing:
        raise SystemExit(f"{STATES} and tools/cache_healthy.py differ in {missing}.")
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
            before = sorted(path for path in cache.iterdir() if not path.name.endswith("-atime"))
            seen = look(cache, "--repair")
            after = sorted(path for path in cache.iterdir() if not path.name.endswith("-atime"))
            changed = kind is not busy and after != before
        yield "healthy directories", 1, ""
        yield "entries in them", len(list(cache.glob("*-cache"))), ""
        yield "false alarms", len(wrong := alarms(seen)), f"{kind.name}: {wrong}"
        moved = seen["repaired"]["moved"]
        yield "false alarms that move a file", len(moved), f"{kind.name}: {moved}"
        yield "files changed", changed, kind.name
        shutil.rmtree(place)


def look_at_planted(folder: Path, others: list[str]) -> Iterator[tuple[str, int, str]]:
    """Plant the problems that are listed, and yield what is counted, and of what."""
    plants = {one.name: one for one in PLANTS}
    originals = {}
    for name, base in BASES.items():
        (folder / name).mkdir()
        originals[name] = base.make(folder / name)
    for number, row in enumerate(states("planted")):
        one, place = plants[row["name"]], folder / "planted"
        shutil.copytree(originals[row["base"]].parent, place, symlinks=True)
        cache = place / originals[row["base"]].name
        _multiply(cache, int(row["entries"]), random.Random(number))
        entry = plant(one, cache)
        findings, moved = _diagnosed_and_repaired(cache, one.check == "unloadable")
        label = f"{number}: {row['name']}, {row['base']}, {row['entries']} entries: {findings}"
        mine = [f for f in findings if f[0] == row["check"] and (one.whole or entry in f[2])]
        found = [f[1] for f in mine][:1] == [row["severity"]] or (
            bool(mine) and mine[0][1] in row["severity"].split(" or ")
        )
        yield "planted", 1, ""
        yield "found", found, ""
        yield "missed", not found, label
        due = one.check in MOVED and one.severity != "note"
        wrong = len(moved) != one.entries * due or (due and entry not in moved)
        yield "moved wrongly", wrong, f"{label}: {moved}"
        known = {row["check"], "orphaned" if EARLY else ""}
        beside = {f[0] for f in findings if f[1] != "note"} - known
        yield "false alarms beside", len(beside), label
        shutil.rmtree(place)


def _multiply(cache: Path, entries: int, rng: random.Random) -> None:
    """Copy entries but the one that is planted under other keys, until there are so many."""
    _, *others = sorted(cache.glob("jit_*-cache"))
    while len(others) + 1 < entries:
        entry = rng.choice(others[:4])
        if not entry.name.endswith("-cache") or entry.is_dir() or len(entry.name) < 70:
            others.remove(entry)
            continue
        module = entry.name.removesuffix("-cache")[:-65]
        copy = cache / f"{module}-{rng.getrandbits(256):064x}-cache"
        shutil.copy2(entry, copy)
        used = entry.with_name(entry.name.removesuffix("-cache") + "-atime")
        if used.exists():
            shutil.copy2(used, copy.with_name(copy.name.removesuffix("-cache") + "-atime"))
        others.append(copy)


def _diagnosed_and_repaired(
    cache: Path, loading: bool
) -> tuple[list[tuple[str, str, tuple[str, ...]]], list[str]]:
    seen = survey(open_directory(str(cache)))
    refused = {}
    if loading:
        names = [one.name for one in seen.entries if one.contents.state == "readable"]
        refused = dict(load(cache, names).refused)
    diagnosis = doctor.diagnose(seen, settings(-1), jax_names.version(), refused=refused)
    repaired = repair(cache, seen.entries, diagnosis.findings)
    return [(f.check, f.severity, f.entries) for f in diagnosis.findings], repaired.moved


def kill_repairs(folder: Path, rounds: int) -> Iterator[tuple[str, int, str]]:
    """Kill a repair of many entries at a random moment; yield what is lost."""
    rng = random.Random(0)
    (folder / "original").mkdir()
    original = BASES["capped"].make(folder / "original")
    _multiply(original, 60, rng)
    for number, path in enumerate(sorted(original.glob("*-cache"))):
        if number % 3 == 0:
            path.write_bytes(path.read_bytes()[:-9] if number % 2 else b"")
        elif number % 3 == 1:
            path.with_name(path.name.removesuffix("-cache") + "-atime").unlink()
    backdate(original)
    whole = {
        path.name: path.read_bytes()
        for number, path in enumerate(sorted(original.glob("*-cache")))
        if number % 3
    }
    every = {path.name for path in original.glob("*-cache")}
    cache, longest_s = folder / "repaired", 0.0
    for number in range(rounds + 3):  # the first tell how long one takes
        shutil.copytree(original, cache)
        seen = survey(open_directory(str(cache)))
        diagnosis = doctor.diagnose(seen, settings(CAP), "0.10.2")
        begin, child = time.monotonic(), os.fork()
        if child == 0:
            repair(cache, seen.entries, diagnosis.findings)
            os._exit(0)
        if number >= 3:
            time.sleep(rng.uniform(0, longest_s))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if number < 3:
            longest_s = max(longest_s, time.monotonic() - begin)
            shutil.rmtree(cache)
            continue
        left = {path.name: path for path in cache.glob("*-cache")}
        aside = {path.name for path in cache.glob("quarantine-*/*-cache")}
        lost = [n for n, data in whole.items() if n not in left or left[n].read_bytes() != data]
        yield "repairs killed", os.WIFSIGNALED(status), ""
        yield "repairs that ended before", not os.WIFSIGNALED(status), ""
        yield "healthy entries lost by a kill", len(lost), f"{number}: {lost}"
        yield "files neither there nor aside", len(every - set(left) - aside), str(number)
        shutil.rmtree(cache)


def repair_beside(folder: Path, rounds: int) -> Iterator[tuple[str, int, str]]:
    """Kill a writer again and again while doctors move what is bad; yield what is lost or left."""
    rng = random.Random(0)
    caches = {folder / "written": {}, folder / "written with a cap": CAPPED}
    whole: dict[Path, set[str]] = {cache: set() for cache in caches}

    def states_in(cache: Path) -> dict[str, str]:
        return {e.name: e.contents.state for e in survey(open_directory(str(cache))).entries}

    def mend(cache: Path) -> None:
        words = ("--repair", "--no-put-cost", "--settle", "1")
        forks.harness("cache", "doctor", cache, *words)

    for number in range(rounds):
        cache, variables = list(caches.items())[number % 2]
        with healthy.being_written(cache, WRITER, **variables):
            until = time.monotonic() + rng.uniform(1.0, 2.5)
            while time.monotonic() < until:
                if cache.exists():
                    mend(cache)
                time.sleep(0.05)
        every = states_in(cache)
        now = {name for name, state in every.items() if state == "readable"}
        yield "rounds", 1, ""
        yield "torn by a kill", len(every) - len(now), ""
        yield "healthy entries lost", len(whole[cache] - now), ""
        whole[cache] |= now
    time.sleep(1.1)
    for cache in caches:
        mend(cache)
        left = states_in(cache)
        yield "torn ones left", sum(state != "readable" for state in left.values()), ""
        yield "entries written", len(left), ""
        for moved in cache.glob("quarantine-*/*-cache"):
            with moved.open("rb") as file:
                healthy_one = read_contents(file).state == "readable"
            yield "healthy entries moved", healthy_one, moved.name
            yield "moved aside", 1, ""


COUNTED = {
    "healthy": "healthy directories; entries in them; false alarms: 0; "
    "false alarms that move a file: 0; files changed: 0",
    "planted": "planted; found; missed: 2; moved wrongly: 0; false alarms beside: 1",
    "kills": "repairs killed; repairs that ended before; healthy entries lost by a kill: 0; "
    "files neither there nor aside: 0",
    "beside": "rounds; entries written; torn by a kill; moved aside; "
    "healthy entries moved: 0; healthy entries lost: 0; torn ones left: 0",
}
"""What is printed of each part, and how many of it there may be."""


def main() -> int:
    """Run the parts that are asked for, and print what was counted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", default=list(COUNTED), metavar="PART")
    parser.add_argument("--other", action="append", default=[], metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--list", action="store_true", dest="listing")
    options = parser.parse_args()
    if options.listing:
        csv.writer(sys.stdout, lineterminator="\n").writerows(listed())
        return 0
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory(prefix="harness-doctor-") as name,
        forks.server() as address,
        forks.forking(address),
    ):
        folder = Path(name)
        parts = {
            "healthy": look_at_healthy(folder, options.other),
            "planted": look_at_planted(folder, options.other),
            "kills": kill_repairs(folder, options.rounds),
            "beside": repair_beside(folder, options.rounds),
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
