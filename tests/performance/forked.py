"""Whether a forked process measures what one that was started by itself does.

    python -m tests.performance.forked [--processes 24] [--passes 3] [SELECT ...]

A forked and a fresh process take turns, in random order, on the same cases. Printed are, for each
stage, forked / fresh: the geometric mean over cases of each pair of processes, its median over
pairs and the interval of that; and the part of the scatter between forked processes that their
parents explain (intraclass correlation of the logarithms, negative for none).
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np

from harness.engine.context import Options, local_context
from harness.engine.execution import execute
from harness.engine.parents import PARENTS, Parents
from harness.engine.state import GroupListener, Outcome, SweepState
from harness.stages import sampling
from harness.stages.registry import STAGES, values_ns
from tests.performance.command import BENCHMARKS, options, workloads
from tests.performance.paired import paired

ARMS = ("forked", "fresh")


def measured(select: list[str], effort: str) -> dict[str, list[dict[tuple[str, str], float]]]:
    """Return by arm, for each process, the logarithm of the value of each case and stage."""
    found: dict[str, list[dict[tuple[str, str], float]]] = {arm: [] for arm in ARMS}
    with tempfile.TemporaryDirectory() as scratch, Parents() as parents:
        states = {}
        for arm in ARMS:
            context = local_context(Path(scratch) / arm, BENCHMARKS, None)
            asked = Options(sampling.effort(effort), scenarios=("off",), targets=("cpu",))
            states[arm] = SweepState(
                workloads(*select), context, asked, lambda told: None, Outcome()
            )
        for process in range(sampling.effort(effort).processes):
            for arm in random.sample(ARMS, 2):
                state, known = states[arm], set(states[arm].now)
                for group in state.groups:
                    job = state.job(group, process)
                    assert job is not None
                    listener = GroupListener(state, group, process)
                    execute(job, listener, parents if arm == "forked" else None)
                found[arm].append(
                    {
                        (record.key, stage): float(np.log(value))
                        for name, record in state.now.items()
                        if name not in known
                        for stage, value in values_ns(record.stages).items()
                    }
                )
    return found


def explained(logs: np.ndarray) -> float:
    """Return the intraclass correlation, by analysis of variance, of (parents, siblings) values."""
    siblings = logs.shape[1]
    between = siblings * logs.mean(axis=1).var(ddof=1)
    within = logs.var(axis=1, ddof=1).mean()
    return float((between - within) / (between + (siblings - 1) * within))


def main() -> None:
    """Measure, and print a line for each stage."""
    given = options(__doc__, select=True, processes=24, passes=3)
    found = measured(given.select, f"{given.processes}x{given.passes}")
    print(f"{given.processes} processes each, {PARENTS} parents")
    print("stage           forked / fresh                                  parents explain")
    for stage in STAGES:
        names = sorted({name for one in found["fresh"] for name in one if name[1] == stage})
        if not names:
            continue
        table = {
            arm: np.array([[one.get(name, np.nan) for name in names] for one in found[arm]])
            for arm in ARMS
        }
        known = ~np.isnan(table["forked"]).any(axis=1)
        pairs = paired(*(np.exp(table[arm][known].mean(axis=1)) for arm in ARMS))
        text = f"{stage:15s} {pairs.text():50s}"
        whole = len(table["forked"]) // PARENTS
        if known.all() and whole > 1:
            logs = table["forked"][: whole * PARENTS] - table["forked"].mean(axis=0)
            by_case = [explained(one.reshape(whole, PARENTS).T) for one in logs.T]
            text += f"{np.mean(by_case):+.2f} (mean of {len(names)} cases)"
        print(text)


if __name__ == "__main__":
    main()
