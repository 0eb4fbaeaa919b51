"""Where the CPU seconds of compiling the committed suite go, on the JAX that runs this.

    python -m tools.releases.seconds TARGET

The last case of each workload and transform is compiled twice without events, for its CPU seconds,
of which the least count; and twice under XLA's own events, which say what shares of it go where:
those of the quicker of the two. Prints a JSON object: sums over the programs, in seconds of CPU by
group, of this process and of `ptxas` and others that it starts. Times depend little on what else
runs, and are no wall times. One process for tpu:v5e grows beyond 3 GB.
"""

import json
import sys
import time
from collections import defaultdict

import jax
import msgspec
import psutil

from harness import targets
from harness.program.compiler.inside import inside
from harness.program.compiler.recording import recorded
from harness.program.compiler.times import compile_times
from harness.stages.build import Build
from harness.targets import topologies
from harness.workload.workload import SEVERAL_DEVICES, skip_reason
from tools.performance.command import prepared, workloads

ROUNDS = 2


def cpu():
    """Return the CPU seconds of this process, and of `ptxas` and others that it has started."""
    spent = psutil.Process().cpu_times()
    return time.process_time() + spent.children_user + spent.children_system


def chosen(topology):
    """Yield the cases that are compiled: the last of each workload and transform."""
    for workload in workloads():
        last = {}
        for name, ready in prepared([workload], topology):
            case = ready.case
            if case.transform not in SEVERAL_DEVICES and not skip_reason(workload, case):
                last[case.transform] = name, ready
        yield from last.values()


def compiled(ready):
    """Return the least CPU seconds of a case's compiles, and its quickest one under events."""
    cpu_s, seen = [], []
    for _ in range(ROUNDS):
        for traced in (False, True):
            jax.clear_caches()
            build = Build.of(ready)
            build.lower()
            begin = cpu()
            if traced:
                seen.append(inside(recorded(build.compile), ""))
            else:
                build.compile()
                cpu_s.append(cpu() - begin)
    return min(cpu_s), min(seen, key=lambda each: each.threads_s)


def measure(place):
    """Return the sums of all cases that a target can have."""
    topology = topologies.describe(place.name, place.description) if place.description else None
    one = topology.one if topology else None
    first = jax.jit(lambda x: x + 1)
    first.lower(jax.ShapeDtypeStruct((8,), "float32", sharding=one)).compile()
    groups, names, kernels = defaultdict(float), [], 0
    for name, ready in chosen(topology):
        try:
            cpu_s, best = compiled(ready)
        except Exception as error:
            print(f"{name}: {error}"[:200], file=sys.stderr)
            continue
        times = msgspec.to_builtins(compile_times(best))["groups"]
        whole = sum(one.get("threads_s", 0) for one in times)
        for part in times:
            group = ": ".join(filter(None, (part["group"], part.get("part", ""))))
            groups[group] += cpu_s * part.get("threads_s", 0) / whole
        names.append(name)
        kernels += len(best.kernels)
    return {"programs": len(names), "kernels": kernels, "groups": groups}


if __name__ == "__main__":
    print(json.dumps(measure(targets.find(sys.argv[1]))))
