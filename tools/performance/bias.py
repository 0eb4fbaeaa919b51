"""Whether the harness's `execute` is what a bare loop in a process of its own measures.

    python -m tools.performance.bias [--rounds 12] [--awake 0.5]

In each round a sweep of one process and one pass measures eight functions
(tests/suites/calls), and another fresh process runs each in a bare loop, that of the script of
tools.corpus: for half a second, which is not looked at, and then for 20 ms. Which of the two comes
first is left to chance:

    t = clock(); jax.block_until_ready(f(x)); clock() - t

It knows nothing of the harness but where the functions stand. Printed are the bare loop's least and
median call (medians over rounds), and harness / bare: the median of the ratios round by round, with
its 95 % interval; last that of the least calls of all rounds, which others on the machine disturb
least. Target: within 5 %.
"""

import functools
import json
import os
import statistics
import time
from typing import Any

from tools.performance.command import ROOT, fresh, in_turns, options, swept, workloads
from tools.performance.paired import paired

SUITE = ROOT / "tests" / "suites" / "calls"
ORDER = ("Gelu", "Scan", "LongGelu", "Product", "Softmax", "Tanh", "Sort", "Products")
"""From the shortest call to the longest."""

Times = dict[str, tuple[float, float]]
"""The least and the median call of each function, in seconds."""


def functions() -> list[Any]:
    by_name = {one.__name__: one for one in workloads(folder=SUITE)}
    return [by_name[name] for name in ORDER]


def bare(awake_s: float) -> Times:
    """Run each function in a bare loop in this process, once it has run for so long."""
    import jax
    import numpy as np

    from tools.corpus.independent import calls

    times = {}
    for workload in functions():
        shape = workload().inputs().shape
        x = jax.numpy.asarray(np.random.default_rng(0).standard_normal(shape), "float32")
        function, began = jax.jit(workload.function), time.perf_counter()
        while time.perf_counter() - began < awake_s:
            jax.block_until_ready(function(x))
        each_s = calls(function, (x,), donates=False)
        times[workload.__name__] = min(each_s), statistics.median(each_s)
    return times


def by_harness() -> Times:
    """Measure them by a sweep of one process."""
    records = swept(functions(), "1x1", folder=SUITE, targets=("cpu",)).records
    return {
        record.workload.rpartition(".")[2]: (calls.least_ns / 1e9, calls.p50_ns / 1e9)
        for record in records
        if (taken := record.stages.get("execute")) and (calls := taken.calls)
    }


def main() -> None:
    given = options(__doc__, rounds=12, awake=0.5, child=False)
    if given.child:  # what each bare process does
        print(json.dumps(bare(given.awake)))
        return
    os.environ["JAX_PLATFORMS"] = "cpu"
    child = functools.partial(fresh, __spec__.name, "--child", "--awake", given.awake)
    ours, theirs = in_turns(given.rounds, {"harness": by_harness, "bare": child}).values()
    print("| function | bare: least | median | harness / bare: least | median | least of all |")
    print("|---|---|---|---|---|---|")
    for name in ORDER:
        bare_s, ratios = [], []
        for at in (0, 1):
            over, under = ([one[name][at] for one in way] for way in (ours, theirs))
            bare_s.append(f"{statistics.median(under) * 1e6:,.0f} µs")
            ratio = paired(over, under)
            ratios.append(f"{ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]")
        least = min(one[name][0] for one in ours) / min(one[name][0] for one in theirs)
        print(f"| {name} | {' | '.join([*bare_s, *ratios])} | {least:.3f} |")


if __name__ == "__main__":
    main()
