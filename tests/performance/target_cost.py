"""What the whole suite costs on a compile-only target, beside what it cannot cost less than.

    python -m tests.performance.target_cost [--target gpu:h200] [--effort quick]

Printed is the wall time of measuring every workload of benchmarks/, beside the time inside timed
regions plus the time from each process's start until it can measure (Python, JAX, the target's
compiler, the workload). Target: a ratio of at most 1.5. Both are taken in the same minutes, so a
machine that other work slows down changes the ratio little.
"""

from __future__ import annotations

import time

from tests.performance.command import options, swept, workloads


def main() -> None:
    """Measure the suite once and print what it cost."""
    given = options(__doc__, target="gpu:h200", effort="quick")
    begin = time.perf_counter()
    outcome = swept(workloads(), given.effort, targets=(given.target,))
    wall_s = time.perf_counter() - begin
    starts_s = [
        record.stages["ready"].samples_ns[0] / 1e9
        for record in outcome.records
        if record.workload == "process"
    ]
    timed_s = outcome.timed_ns / 1e9
    least_s = timed_s + sum(starts_s)
    print(
        f"{given.target}: {outcome.measured} cases in {len(starts_s)} processes, "
        f"{len(outcome.failed)} failed or refused: {wall_s:.1f} s, of which {timed_s:.1f} s in "
        f"timed regions and {sum(starts_s):.1f} s in starting processes: "
        f"{wall_s / least_s:.2f} times these (target: at most 1.5)"
    )


if __name__ == "__main__":
    main()
