"""Are the ledger's saved seconds the difference of independent cold and warm runs?

    python tests/performance/saved.py [PROCESSES]

Cold and warm processes without a ledger time `lowered.compile()` by themselves; another set runs
under a ledger. Printed per program: both figures, JAX's own, and what the ledger adds to a request.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.cache.ledger import read, summarize
from harness.watch import programs

PROGRAM = """
import sys, time
import jax, jax.numpy as jnp, numpy as np
def measured(x):
    for i in range(int(sys.argv[1])):
        x = jnp.tanh(jnp.sort(x @ x) * (i + 1.5))
    return x
jax.jit(lambda x: x + 1)(np.ones(3))
lowered = jax.jit(measured).lower(np.ones((64, 64), np.float32))
began = time.perf_counter()
lowered.compile()
print(time.perf_counter() - began)
"""


def one(depth: int, cache: str, ledger: Path | None) -> float:
    """Return the seconds of one compile in a process of its own."""
    there = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    if ledger is not None:
        there = programs.environment(there, HARNESS_LEDGER=str(ledger.resolve()))
    command = [sys.executable, "-c", PROGRAM, str(depth)]
    return float(subprocess.run(command, env=there, check=True, capture_output=True).stdout)


def main(processes: int) -> None:
    """Print a line per depth of the program."""
    for depth in (1, 6, 30, 150):
        with tempfile.TemporaryDirectory() as folder:
            plain: dict[str, list[float]] = {"cold": [], "warm": []}
            watched: dict[str, list[float]] = {"cold": [], "warm": []}
            path = Path(folder) / "book.jsonl"
            for number in range(processes):
                for kind in plain:
                    plain[kind].append(one(depth, f"{folder}/plain{number}", None))
                    watched[kind].append(one(depth, f"{folder}/watched{number}", path))
            events = [event for event in read(path).events if event.module == "jit_measured"]
        cold, warm = (statistics.median(seconds) for seconds in plain.values())
        found = summarize(events)
        # The same processes by their own clock: what machine noise leaves of the comparison.
        outside = sum(watched["cold"]) - sum(watched["warm"])
        outside -= sum(e.own_s if e.outcome == "written" else -e.own_s for e in events)
        inside = sum(e.compile_s or 0.0 for e in events) - found.load_s
        saved = found.saved_s / found.hits
        written = [event for event in events if event.outcome == "written"]
        own = statistics.median(event.own_s for event in events)
        own_cold = statistics.median(event.own_s for event in written)
        write = statistics.median(event.write_s or 0.0 for event in written)
        print(
            f"depth {depth}: independent {cold:.4f} - {warm:.4f} = {cold - warm:.4f} s, "
            f"ledger {saved:.4f} s ({saved / (cold - warm) - 1:+.1%}; "
            f"against the same processes' own clock {inside / outside - 1:+.1%}), of cold "
            f"{write:.4f} s is the write; JAX's own {found.jax_saved_s / found.hits:.4f} s; "
            f"own time per request {own * 1e3:.2f} ms, where new {own_cold * 1e3:.2f} ms"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
