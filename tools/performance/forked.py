"""Whether a forked process measures what one that was started by itself does.

    python -m tools.performance.forked [--processes 24] [--passes 3] [SELECT ...]

A forked and a fresh process take turns, in random order, on the same cases. Printed is, for each
stage, forked / fresh: the geometric mean over cases of each pair of processes, its median over
pairs and the interval of that; and the same of the wall time, the parent's start included. The
smallest program goes first and is left out: the first process of each number is never forked.
"""

import random
import tempfile
import time
from pathlib import Path

import numpy as np

from harness.measure.context import Options, local_context
from harness.measure.execution import execute
from harness.measure.outcome import Outcome
from harness.measure.parents import Parents
from harness.measure.state import GroupListener, SweepState
from harness.stages import sampling
from harness.stages.registry import STAGES, values_ns
from harness.workload.workload import name_of
from tools.performance.command import BENCHMARKS, options, workloads
from tools.performance.paired import paired

ARMS = ("forked", "fresh")
FIRST = "startup.Smallest"

Logs = dict[tuple[str, str], float]
"""The logarithm of one process's value by case and stage."""


def measured(
    select: list[str], effort: str
) -> tuple[dict[str, list[Logs]], dict[str, list[float]]]:
    """Return by arm what each process measured, and the seconds that those after the first took."""
    chosen = sorted(workloads(*select, FIRST), key=lambda one: name_of(one) != FIRST)
    by_arm: dict[str, list[Logs]] = {arm: [] for arm in ARMS}
    seconds: dict[str, list[float]] = {arm: [] for arm in ARMS}
    with tempfile.TemporaryDirectory() as scratch, Parents() as parents:
        states = {}
        for arm in ARMS:
            context = local_context(Path(scratch) / arm, BENCHMARKS, None)
            asked = Options(
                sampling.effort(effort), scenarios=("off",), targets=("cpu",), first_calls=0
            )
            states[arm] = SweepState(chosen, context, asked, lambda progress: None, Outcome())
        for process in range(sampling.effort(effort).processes):
            for arm in random.sample(ARMS, 2):
                state, before = states[arm], set(states[arm].now)
                begin = 0.0
                for group in state.groups:
                    begin = begin or time.perf_counter() * (name_of(group.workload) != FIRST)
                    job = state.job(group, process)
                    if job is None:
                        continue
                    listener = GroupListener(state, group, process)
                    execute(job, listener, parents if arm == "forked" else None)
                seconds[arm].append(time.perf_counter() - begin)
                new = [record for name, record in state.now.items() if name not in before]
                by_arm[arm].append(
                    {
                        (record.key, stage): float(np.log(value))
                        for record in new
                        if arm == "fresh" or record.parent
                        for stage, value in values_ns(record.stages).items()
                    }
                )
    return by_arm, seconds


def main() -> None:
    given = options(__doc__, select=True, processes=24, passes=3)
    by_arm, seconds = measured(given.select, f"{given.processes}x{given.passes}")
    print(f"stage           forked / fresh, {given.processes} processes each")
    for stage in STAGES:
        processes = [*by_arm["forked"], *by_arm["fresh"]]
        names = sorted(
            {name for name in processes[0] if name[1] == stage}.intersection(*processes[1:])
        )
        if not names:
            continue
        forked, fresh = (
            [float(np.exp(np.mean([one[name] for name in names]))) for one in by_arm[arm]]
            for arm in ARMS
        )
        print(f"{stage:15s} {paired(forked, fresh).text()}, {len(names)} cases")
    print(f"{'all, with starts':15s} {paired(*(seconds[arm] for arm in ARMS)).text()}")


if __name__ == "__main__":
    main()
