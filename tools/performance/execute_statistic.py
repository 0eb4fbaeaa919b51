"""How much `execute` scatters between processes, by what is kept of a process.

    python -m tools.performance.execute_statistic [--processes 8] [--pass-ms 20]

Every process runs each CPU case of nine workloads in three passes and times each call by itself;
of these times are made the least call, and the least mean over a block of 2.5 ms, of the first half
of each pass and of the whole of it. Printed is the standard deviation of their logarithms over the
processes: the median over cases, the upper quartile, and the mean of the three smallest programs.
"""

import json
import random
import time

import numpy as np
import pandas as pd

from tools.performance.command import fresh, options, prepared, workloads

NAMES = ["Gather", "Gelu", "Heat", "Scan", "Reduce", "Fft", "Softmax", "MlpLoss", "Predict"]
BLOCK_NS = 2_500_000


def kept(times: np.ndarray) -> dict[str, float]:
    """Return what may be kept of one pass, in nanoseconds."""
    half = times[: np.searchsorted(np.cumsum(times), times.sum() / 2) + 1]
    found = {}
    for label, part in (("half", half), ("whole", times)):
        calls = max(1, round(BLOCK_NS / np.median(part)))
        blocks = part[: max(1, len(part) // calls) * calls].reshape(-1, min(calls, len(part)))
        found[f"least call, {label}"] = float(part.min())
        found[f"least mean, {label}"] = float(blocks.mean(axis=1).min())
    return found


def measure(pass_ns: int) -> dict[str, dict[str, float]]:
    """Measure every case in this process."""
    import jax

    from harness.jaxhooks import evidence
    from harness.stages.passes import take_pass

    proof, clock = evidence.Evidence(), time.perf_counter_ns
    cases = list(prepared([one for one in workloads() if one.__name__ in NAMES]))
    found: dict[str, dict[str, float]] = {}
    for _ in range(3):
        for name, ready in random.sample(cases, len(cases)):
            taken = take_pass(ready, proof, steps=("build", "compile"))
            call, arguments = taken.call, ready.data(taken.build.compiled)
            jax.block_until_ready(call(*arguments))
            times: list[int] = []
            end = clock() + pass_ns
            while not times or clock() < end:
                begin = clock()
                jax.block_until_ready(call(*arguments))
                times.append(clock() - begin)
            values = kept(np.array(times, dtype=float))
            best = found.setdefault(name, values)
            found[name] = {label: min(best[label], values[label]) for label in values}
    return found


def main() -> None:
    given = options(__doc__, processes=8, pass_ms=20.0, child=False)
    if given.child:  # what each process does
        print(json.dumps(measure(round(given.pass_ms * 1e6))))
        return
    child = (__spec__.name, "--child", "--pass-ms", given.pass_ms)
    runs = [fresh(*child, JAX_PLATFORMS="cpu") for _ in range(given.processes)]
    logs = np.log(pd.concat(map(pd.DataFrame, runs), keys=range(len(runs)), names=["run", "kept"]))
    scatter = logs.groupby("kept", sort=False).std()
    smallest = logs.loc[0].loc["least call, whole"].nsmallest(3).index
    print(f"{scatter.shape[1]} cases, {len(runs)} processes, 3 passes of {given.pass_ms:g} ms")
    print(f"{'kept':20s} {'median':>8s} {'quartile':>9s} {'smallest 3':>11s}")
    for label, own in scatter.iterrows():
        print(
            f"{label:20s} {own.median():8.1%} {own.quantile(0.75):9.1%} "
            f"{own[smallest].mean():11.1%}"
        )


if __name__ == "__main__":
    main()
