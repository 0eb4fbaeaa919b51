"""Whether the facts of a program are the same in every process, and what it costs to read them.

    python -m tools.performance.facts [--target cpu] [--processes 5] [SELECT ...]

Builds every case of benchmarks/ in fresh processes, one after the other, for `cpu` or for the
compile-only `gpu:h200` or `tpu:v5e`; a case that wants more devices than there are is left out.
Prints the cases whose facts differ, and the CPU time of one reading. Targets: none differs; a
typical case below 5 ms. `--one` is what each process does.
"""

import json
import statistics
import time
from importlib.metadata import version
from typing import Any

import pandas as pd

from harness import targets
from tools.performance.command import fresh, options, prepared, workloads

COMPARED = 12
"""How many of the slowest cases are printed."""


def one(target: str, select: list[str]) -> dict[str, dict[str, Any]]:
    """Build every case in this process; return case to its facts and the CPU seconds they took."""
    import jax
    import msgspec

    from harness.program.facts import facts_of
    from harness.stages.build import Build
    from harness.targets import topologies

    place = targets.find(target)
    there = place.description and topologies.describe(place.name, place.description)
    found = {}
    for name, ready in prepared(workloads(*select), there or None):
        jax.clear_caches()
        build = Build.of(ready)
        for _, step in build.steps():
            step()
        begin = time.thread_time()
        facts = facts_of(build.traced, build.lowered, build.compiled)
        seconds = time.thread_time() - begin
        found[name] = {"facts": msgspec.to_builtins(facts), "seconds": seconds}
    return found


def main() -> None:
    choices = ("cpu", "gpu:h200", "tpu:v5e")
    given = options(__doc__, select=True, target=choices, processes=5, one=False)
    if given.one:  # what each process does
        print(json.dumps(one(given.target, given.select)))
        return
    variables = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
    variables |= targets.find(given.target).environment
    wanted = (__spec__.name, "--one", "--target", given.target, *given.select)
    runs = [
        fresh(*wanted, **variables, PYTHONHASHSEED=str(number)) for number in range(given.processes)
    ]
    report(runs, given.target)


def report(runs: list[dict[str, dict[str, Any]]], target: str) -> None:
    """Print what differs between the runs, and the time of reading."""
    cases = sorted({case for run in runs for case in run})
    differing = 0
    for case in cases:
        said = pd.DataFrame([run.get(case, {"facts": {}})["facts"] for run in runs]).astype(str)
        unlike = said.columns[said.nunique() > 1]
        if len(unlike):
            differing += 1
            print(f"differs: {case}: {said[unlike].to_dict('list')}")
    print(
        f"jax {version('jax')}, {target}: {len(cases)} cases in {len(runs)} processes; "
        f"{differing} differ (target: 0)"
    )
    medians = {
        case: statistics.median(run[case]["seconds"] for run in runs if case in run) * 1e3
        for case in cases
    }
    for case in sorted(cases, key=medians.__getitem__, reverse=True)[:COMPARED]:
        facts = runs[0].get(case, {}).get("facts", {})
        print(f"{medians[case]:7.2f} ms  {facts.get('hlo_instructions')} instructions  {case}")
    print(
        f"CPU time of reading: {statistics.median(medians.values()):.2f} ms in the median case, "
        f"{max(medians.values()):.2f} ms in the slowest (target: 5 ms in a typical one)"
    )


if __name__ == "__main__":
    main()
