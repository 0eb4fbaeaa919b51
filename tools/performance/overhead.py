"""How much of a sweep's time is spent measuring.

    python -m tools.performance.overhead [--effort default] [--target T] [--scenario S] [SELECT ...]

Prints, over all measuring processes of a sweep of benchmarks/, the part of their wall time after
start-up (imports, backend and the first program done) that lies inside timed regions (target:
75 %). Then the wall time of the sweep, over the timed regions and what cannot be had for less: the
time from each process's start until it can measure (Python, JAX, the target's compiler, the
workload; target on a compile-only target: at most 1.5), or what each process measures of itself
(the import of JAX, the backend, a first program), where one that only fills a directory for another
counts as a process too (target in the scenarios `cold` and `warm`: at most 1.3).
"""

import statistics
import time

from harness.measure.process import MeasuringProcess
from harness.stages.registry import values_ns
from tools.performance.command import options, swept, workloads

ONCE = ("import", "backend", "first_lower", "first_compile")


def main() -> None:
    given = options(__doc__, select=True, effort="default", target="", scenario="")
    asked = {
        f"{name}s": (value,) for name in ("target", "scenario") if (value := vars(given)[name])
    }
    real, started = MeasuringProcess.measure, 0

    def counting(process):
        nonlocal started
        started += 1
        return real(process)

    MeasuringProcess.measure = counting
    begin = time.perf_counter()
    outcome = swept(workloads(*given.select), given.effort, **asked)
    wall_s = time.perf_counter() - begin
    timed_s, process_s = outcome.timed_ns / 1e9, outcome.wall_ns / 1e9
    print(
        f"{outcome.measured} records at effort {given.effort}, {len(outcome.failed)} failed or "
        f"refused: {timed_s:.1f} s of {process_s:.1f} s after start-up are inside timed regions: "
        f"{timed_s / process_s:.1%}"
    )
    once = [values_ns(one.stages) for one in outcome.records if one.workload == "process"]
    ready_s = sum(one["ready"] for one in once) / 1e9
    once_s = sum(statistics.median(one[stage] for one in once) for stage in ONCE) / 1e9
    for what, more_s in (
        (f"starts of {len(once)} processes", ready_s),
        (f"what {started} processes measure of themselves", started * once_s),
    ):
        print(
            f"{wall_s:.1f} s in all: {wall_s / (timed_s + more_s):.2f} times timed regions and "
            f"{what} ({more_s:.1f} s)"
        )


if __name__ == "__main__":
    main()
