"""Whether the facts of a program are the same in every process, and what it costs to read them.

    python -m tests.performance.facts [--target cpu] [--processes 5] [SELECT ...]

Builds every case of benchmarks/ in fresh processes, one after the other, for `cpu` or for the
compile-only `gpu:h200` or `tpu:v5e`. Prints the cases whose facts differ, and the CPU time of one
reading. Targets: none differs; a typical case below 5 ms. `--one` is what each process does.
"""

from __future__ import annotations

import json
import statistics
import time

from harness.targets import find
from tests.performance.command import fresh, options, workloads
from tests.program import built

COMPARED = 12
"""How many of the slowest cases are printed."""


def one(target: str, select: list[str]) -> dict[str, dict]:
    """Build every case in this process; return case to its facts and the CPU seconds they took.

    A case that needs several devices is left out where there is one.
    """
    import jax
    import msgspec
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from harness.declare.transforms import NotApplicable
    from harness.declare.workload import enumerate_cases, name_of
    from harness.program.facts import facts_of
    from harness.stages.prepared import prepare, wrap

    mesh = Mesh(np.array(built.devices(target)[:1]), ("x",))
    here = NamedSharding(mesh, PartitionSpec())
    found = {}
    for workload in workloads(*select):
        jax.config.update("jax_enable_x64", workload.x64)
        for case in enumerate_cases(workload, ["cpu"]):
            if target != "cpu" and case.transform in ("sharded", "pmap"):
                continue
            try:
                prepared = prepare(workload, case)
            except NotApplicable:
                continue
            arguments = prepared.abstract
            if target != "cpu":
                arguments = jax.tree.map(
                    lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=here), arguments
                )
            jax.clear_caches()
            jitted = wrap(prepared)
            traced = None
            if prepared.is_pmap:
                lowered = jitted.lower(*arguments)
            else:
                traced = jitted.trace(*arguments, **prepared.static)
                lowered = traced.lower()
            compiled = lowered.compile()
            begin = time.thread_time()
            facts = facts_of(traced, lowered, compiled)
            seconds = time.thread_time() - begin
            found[f"{name_of(workload)} {case.id}"] = {
                "facts": msgspec.to_builtins(facts),
                "seconds": seconds,
            }
    return found


def main() -> None:
    """Start the processes, compare what they say, and print it."""
    targets = ("cpu", *built.PACKAGES)
    given = options(__doc__, select=True, target=targets, processes=5, one=False)
    if given.one:  # what each process does
        print(json.dumps(one(given.target, given.select)))
        return
    variables = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
    variables |= find(given.target).environment
    wanted = (__spec__.name, "--one", "--target", given.target, *given.select)
    runs = [
        fresh(*wanted, **variables, PYTHONHASHSEED=str(number)) for number in range(given.processes)
    ]
    report(runs, given.target)


def report(runs: list[dict[str, dict]], target: str) -> None:
    """Print what differs between the runs, and the time of reading."""
    from importlib.metadata import version

    cases = sorted({case for run in runs for case in run})
    differing = 0
    for case in cases:
        said = [run[case]["facts"] if case in run else {} for run in runs]
        fields = sorted({f for facts in said for f in facts if facts[f] != said[0].get(f)})
        if any(facts != said[0] for facts in said):
            differing += 1
            values = {field: [facts.get(field) for facts in said] for field in fields}
            print(f"differs: {case}: {values}")
    print(
        f"jax {version('jax')}, {target}: {len(cases)} cases in {len(runs)} processes; "
        f"{differing} differ (target: 0)"
    )
    medians = {
        case: statistics.median(run[case]["seconds"] for run in runs if case in run) * 1e3
        for case in cases
    }
    for case in sorted(cases, key=medians.get, reverse=True)[:COMPARED]:
        facts = runs[0].get(case, {}).get("facts", {})
        print(f"{medians[case]:7.2f} ms  {facts.get('hlo_instructions')} instructions  {case}")
    print(
        f"CPU time of reading: {statistics.median(medians.values()):.2f} ms in the median case, "
        f"{max(medians.values()):.2f} ms in the slowest (target: 5 ms in a typical one)"
    )


if __name__ == "__main__":
    main()
