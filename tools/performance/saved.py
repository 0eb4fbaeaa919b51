"""Are the ledger's saved seconds, and its hit rate by seconds, those of independent clocks?

    python -m tools.performance.saved [--programs 20] [--processes 3]

Per program, processes of its own: without a cache, with a warm one, and both under a ledger. Each
times the compile of one function, and of a second one that the cache never has, by its own clock.
Printed: how far the ledger's saved seconds are from the difference of those clocks, of the same
processes and of those without a ledger; and whether the hit rate by seconds is within the bounds
that the ledger of the warm process alone gives.
"""

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from harness.cache.ledger import read, summarize
from harness.jaxhooks.events import Request
from tests import forks
from tools.performance.command import options

PROGRAM = """
import contextlib, json, sys, time
import jax, jax.numpy as jnp, numpy as np
from harness.cache.ledger import ledger
depth, width, book = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def measured(x):
    for i in range(depth):
        x = jnp.tanh(jnp.sort(x @ x) * (i + 1.5))
    return x
def other(x):
    for i in range(20):
        x = jnp.sin(jnp.sort(x @ x) * (i + 0.5 + time.time_ns() % 10**6))
    return x
x = np.ones((width, width), np.float32)
jax.jit(lambda x: x + 1)(x)
took = {}
with ledger(book) if book else contextlib.nullcontext() as found:
    for function in (measured, other):
        lowered = jax.jit(function).lower(x)
        began = time.perf_counter()
        lowered.compile()
        took[function.__name__] = time.perf_counter() - began
print(json.dumps(took))
"""

DEPTHS = (1, 2, 3, 4, 6, 8, 10, 12, 15, 18)


def one(depth: int, width: int, cache: str, ledger: str = "") -> dict[str, float]:
    """Return the seconds that the two functions took in a process of its own."""
    there = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-c", PROGRAM, str(depth), str(width), ledger]
    done = forks.run(command, env=there, check=True)
    return dict(json.loads(done.stdout))


def compare(depth: int, width: int, processes: int, folder: str) -> dict[str, Any]:
    """Return what the clocks, and what the ledgers, say of one program."""
    cold, warm, same, saved, rates = [], [], [], [], []
    within = True
    for number in range(processes):
        cache, book, again = (f"{folder}/{what}{number}" for what in ("c", "cold", "warm"))
        first = one(depth, width, cache, book)
        cold.append(one(depth, width, "")["measured"])
        warm.append(one(depth, width, cache)["measured"])
        second = one(depth, width, cache, again)
        filled, used = read(Path(book)).events, read(Path(again)).events
        saved.append(summarize(used, filled).saved_s)
        alone = summarize(used)
        low, high = (alone.by_seconds.with_more(more).value for more in alone.unknown_s)
        # A miss also writes an entry, which is no part of its compile; and the ledger takes time.
        spent, hit = _spent(first, filled), _spent(second, used)
        same.append(spent["measured"] - hit["measured"])
        rate = spent["measured"] / (spent["measured"] + hit["other"])
        within &= None not in (low, high) and low <= rate <= high
        rates.append((low, rate, high))
    return {
        "clocks": statistics.median(cold) - statistics.median(warm),
        "same": statistics.median(same),
        "ledger": statistics.median(saved),
        "rates": statistics.median_low(rates),
        "within": within,
    }


def _spent(clock: dict[str, float], events: tuple[Request, ...]) -> dict[str, float]:
    """Return the seconds by the program's clock, without writes and what the ledger took."""
    beside = {event.module: (event.write_ns + event.own_ns) / 1e9 for event in events}
    return {name: seconds - beside[f"jit_{name}"] for name, seconds in clock.items()}


def main() -> None:
    asked = options(__doc__, programs=20, processes=3)
    found = []
    with forks.server() as address, forks.forking(address):
        for number in range(asked.programs):
            depth, width = DEPTHS[number % len(DEPTHS)], 16 << number // len(DEPTHS)
            with tempfile.TemporaryDirectory() as folder:
                said = compare(depth, width, asked.processes, folder)
            found.append(said)
            low, rate, high = said["rates"]
            print(
                f"depth {depth:2}, width {width}: saved {said['ledger']:.3f} s by the ledger, "
                f"{said['same']:.3f} s by the clock beside it, {said['clocks']:.3f} s by "
                f"processes of their own; rate {rate:.1%}, "
                f"told as {low:.1%} to {high:.1%}{'' if said['within'] else ': OUTSIDE'}",
                flush=True,
            )
    total = pd.DataFrame(found).drop(columns="rates").sum()
    print(f"{total['within']:.0f} of {len(found)} rates within their bounds")
    for name, what in (("same", "the clocks beside them"), ("clocks", "processes of their own")):
        told = f"{total['ledger']:.2f} s by the ledgers, {total[name]:.2f} s by {what}"
        print(f"saved {told}: {total['ledger'] / total[name] - 1:+.1%}")


if __name__ == "__main__":
    main()
