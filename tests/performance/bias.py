"""Whether the harness's `execute` is what a bare loop in a process of its own measures.

    python -m tests.performance.bias [--rounds 12] [--ms 20]

In each round a sweep of one process and one pass measures eight functions
(tests/suites/calls), and another fresh process runs each in a bare loop of as many milliseconds,
which of the two first by chance:

    t = clock(); jax.block_until_ready(f(x)); clock() - t

It knows nothing of the harness but where the functions stand. Printed are the bare loop's least and
median call (medians over rounds), and harness / bare: the median of the ratios round by round, with
its 95 % interval; last that of the least calls of all rounds, which others on the machine disturb
least. Target: within 5 %.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from harness.declare import discovery
from harness.engine.context import Options, local_context
from harness.engine.sweep import sweep
from harness.stages.sampling import effort
from tests.performance.command import ROOT, fresh, in_turns, options
from tests.performance.paired import paired

SUITE = ROOT / "tests" / "suites" / "calls"

Found = dict[str, tuple[float, float]]
"""The least and the median call of each function, in seconds."""


def workloads() -> list[Any]:
    """Return the eight workloads, from the shortest call to the longest."""
    found = {one.__name__: one for one in discovery.discover(SUITE).workloads}
    order = ("Gelu", "Scan", "LongGelu", "Product", "Softmax", "Tanh", "Sort", "Products")
    return [found[name] for name in order]


def bare(ms: float) -> Found:
    """Run each function in a bare loop in this process."""
    import jax
    import numpy as np

    clock = time.perf_counter_ns
    found = {}
    for workload in workloads():
        shape = workload().inputs().shape
        x = jax.numpy.asarray(np.random.default_rng(0).standard_normal(shape), "float32")
        function = jax.jit(workload.function)
        for _ in range(5):
            jax.block_until_ready(function(x))
        times: list[int] = []
        while len(times) < 3 or sum(times) < ms * 1e6:
            begin = clock()
            jax.block_until_ready(function(x))
            times.append(clock() - begin)
        found[workload.__name__] = min(times) / 1e9, statistics.median(times) / 1e9
    return found


def swept() -> Found:
    """Measure them by a sweep of one process."""
    with tempfile.TemporaryDirectory() as results:
        context = local_context(Path(results), SUITE, None)
        records = sweep(workloads(), context, Options(effort("1x1"), targets=("cpu",))).records
    return {
        record.workload.rpartition(".")[2]: (calls.least_ns / 1e9, calls.p50_ns / 1e9)
        for record in records
        if (taken := record.stages.get("execute")) and (calls := taken.calls)
    }


def main() -> None:
    """Take turns, and print a line for each function."""
    given = options(__doc__, rounds=12, ms=20.0, child=False)
    if given.child:  # what each bare process does
        print(json.dumps(bare(given.ms)))
        return
    os.environ["JAX_PLATFORMS"] = "cpu"
    child = functools.partial(fresh, __spec__.name, "--child", "--ms", given.ms)
    ours, theirs = in_turns(given.rounds, {"harness": swept, "bare": child}).values()
    print("| function | bare: least | median | harness / bare: least | median | least of all |")
    print("|---|---|---|---|---|---|")
    for name in theirs[0]:
        bare_s, ratios = [], []
        for at in (0, 1):
            over, under = ([one[name][at] for one in way] for way in (ours, theirs))
            bare_s.append(f"{statistics.median(under) * 1e6:,.0f} µs")
            found = paired(over, under)
            ratios.append(f"{found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]")
        least = min(one[name][0] for one in ours) / min(one[name][0] for one in theirs)
        print(f"| {name} | {' | '.join([*bare_s, *ratios])} | {least:.3f} |")


if __name__ == "__main__":
    main()
