"""Workloads that eat memory: refused by the limit and told, and nothing else is lost.

    python -m tools.memory [--rounds 10] [--seed N]

Each round measures one workload with cases that eat memory in several ways, by pieces and with
pauses of a random size, under a random limit of a measuring process; between them are cases that
do not. Those must be measured in every process; of each that eats the record must say that it ran
out of memory, or how its process ended. No process may have held more than the limit and what it
can take between two looks, and none may be left.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil

from harness.records.schema import Record
from tests import started
from tools.left_over import Place, ran

WAYS = ("arrays", "bytes", "at once", "a thread", "jax", "a child", "a daemon")
SPARED = ("none", "a daemon")
"""What a measuring process itself survives."""

MODULE = """
import subprocess, sys, threading, time

import jax
import jax.numpy as jnp
import numpy as np

from harness import Workload, spec

PIECE, PAUSE_S = {piece}, {pause_s}
EAT = (
    "import time\\nheld = []\\nwhile True:\\n"
    "    held.append(bytearray(%d)); time.sleep(%f)" % (PIECE, PAUSE_S)
)


def eat(make):
    held = []
    while True:
        held.append(make())
        time.sleep(PAUSE_S)


class Eats(Workload):
    sweep = {{"way": {ways}}}
    static = ("way",)
    targets = ("cpu",)
    process_stages = False

    def inputs(self, way):
        return spec((8,))

    @staticmethod
    def function(x, way):
        if way == "arrays":
            eat(lambda: np.ones(PIECE // 8))
        if way == "bytes":
            eat(lambda: bytearray(PIECE))
        if way == "at once":
            np.ones(2**37)
        if way == "a thread":
            beside = threading.Thread(target=eat, args=[lambda: np.ones(PIECE // 8)])
            beside.start()
            beside.join()
            raise MemoryError("a thread had no more")
        if way == "jax":
            with jax.ensure_compile_time_eval():
                eat(lambda: jnp.ones(PIECE // 4).block_until_ready())
        if way == "a child":
            subprocess.run([sys.executable, "-c", EAT], check=True)
        if way == "a daemon":
            subprocess.Popen([sys.executable, "-c", EAT], start_new_session=True)
        return x + 1
"""
SWEEP = """
import harness
from benchmarks.tiny import Eats

harness.sweep(
    Eats, results="results", effort="2x1", memory_limit_bytes={limit}, timeout_s=60
)
"""

BETWEEN_LOOKS_BYTES = 600 << 20
"""What a process may take until it is looked at again, and until it is gone."""


class Watch:
    """The most that any process of a place has held."""

    def __init__(self, token: str) -> None:
        self.most_bytes, self._token, self._over = 0, token, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.1):
            for process in started.of(self._token):
                try:
                    self.most_bytes = max(self.most_bytes, process.memory_info().rss)
                except psutil.Error:
                    continue

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()


def problems(records: list[Record], ways: list[str]) -> Iterator[str]:
    """Yield what is wrong with the records of one sweep."""
    by_way = Counter((str(one.axes.get("way", "")), one.status) for one in records)
    for way in ("none 1", "none 2", *(way for way in ways if way in SPARED)):
        if by_way[way, "ok"] < 2:
            yield f"{way}: {by_way[way, 'ok']} of 2 processes"
    for one in records:
        if one.status == "ok" and "memory" not in one.contained:
            yield f"{one.workload} was contained by {one.contained}"
        way = str(one.axes.get("way", ""))
        if way in WAYS and way not in SPARED:
            if one.status != "failed":
                yield f"{way} is {one.status}"
            elif not any(word in one.reason for word in ("emory", "killed", "ended", "non-zero")):
                yield f"{way}: {one.reason[:200]}"


def campaign(rounds: int, seed: int) -> Counter[str]:
    """Measure so many sweeps; return what came of them, and say what is bad."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    for number in range(rounds):
        ways = rng.sample(WAYS, 3)
        cases = ["none 1", *ways, "none 2"]
        mib, pause_s = rng.choice([(1, 0.0), (8, 0.005), (64, 0.0), (64, 0.05), (256, 0.05)])
        piece = mib << 20
        limit = rng.choice([768, 1024, 1536]) << 20
        module = MODULE.format(piece=piece, pause_s=pause_s, ways=cases)
        how = f"{piece >> 20} MiB each {pause_s:g} s, limit {limit >> 20} MiB, {ways}"
        with tempfile.TemporaryDirectory() as above, Place(Path(above), module=module) as place:
            began = time.monotonic()
            with Watch(place.token) as watch:
                code, told = place.python("-c", SWEEP.format(limit=limit))
            records = place.records()
            wrong = list(problems(records, ways))
            if code:
                wrong.append(f"ended with {code}")
            if watch.most_bytes > limit + BETWEEN_LOOKS_BYTES:
                wrong.append(f"a process held {watch.most_bytes >> 20} MiB")
            wrong += place.left()
            counts["bad" if wrong else "good"] += 1
            for one in records:
                if one.status == "failed":
                    counts["refused" if "out of memory" in one.reason else "ended"] += 1
            took_s = time.monotonic() - began
            if wrong:
                said = f"{'; '.join(wrong)}\n{told[-1200:]}"
                print(f"#{number} {how}, {took_s:.0f} s: {said}", flush=True)
    return counts


if __name__ == "__main__":
    sys.exit(ran(__doc__, campaign, 10))
