"""How much of a measuring process's time is spent measuring.

    python -m tests.performance.overhead [--effort default] [SELECT ...]

Prints, over all measuring processes of a sweep of benchmarks/, the part of their wall time after
start-up (imports, backend and the first program done) that lies inside timed regions. Target: 75 %.
"""

from __future__ import annotations

from tests.performance.command import options, swept, workloads


def main() -> None:
    """Run a sweep and print the share."""
    given = options(__doc__, select=True, effort="default")
    chosen = workloads(*given.select)
    outcome = swept(chosen, given.effort)
    share = outcome.timed_ns / outcome.wall_ns
    print(
        f"{len(chosen)} workloads, {outcome.measured} records at effort {given.effort}: "
        f"{outcome.timed_ns / 1e9:.1f} s of {outcome.wall_ns / 1e9:.1f} s after start-up are "
        f"inside timed regions: {share:.1%} (target: at least 75 %)"
    )


if __name__ == "__main__":
    main()
