"""What measuring with a persistent cache costs beyond what is measured.

    python -m tests.performance.scenario_cost [--processes 6]

Measures the six cases of GELU in the scenarios `cold` and `warm`, and prints the wall time of the
sweep per process over what the process measures of itself (the import of JAX, the backend, a first
program) and the time inside timed regions. A process that only fills a directory for another counts
as a process. Target: at most 1.3.
"""

from __future__ import annotations

import statistics
import time

from harness.engine import execution
from harness.stages.registry import values_ns
from tests.performance.command import options, swept, workloads

ONCE = ("import", "backend", "first_lower", "first_compile")


def main() -> None:
    """Run both scenarios and print a line for each."""
    given = options(__doc__, processes=6)
    gelu = workloads("elementwise.Gelu")
    real = execution.run
    started = 0

    def counting(*arguments):
        nonlocal started
        started += 1
        return real(*arguments)

    execution.run = counting
    for scenario in ("cold", "warm"):
        started = 0
        begin = time.perf_counter()
        outcome = swept(gelu, f"{given.processes}x1", scenarios=(scenario,))
        wall_s = time.perf_counter() - begin
        processes = [r for r in outcome.records if r.workload == "process"]
        once = [values_ns(r.stages) for r in processes]
        once_s = sum(statistics.median(o[stage] for o in once) for stage in ONCE) / 1e9
        measured_s = outcome.timed_ns / 1e9
        needed_s = started * once_s + measured_s
        print(
            f"{scenario}: {started} processes in {wall_s:.1f} s; {once_s:.2f} s once in each, "
            f"{measured_s:.1f} s measured: {wall_s / needed_s:.2f} (target: at most 1.3)"
        )


if __name__ == "__main__":
    main()
