"""How much of a measuring process's time is spent measuring.

    python -m tests.performance.overhead [--effort default] [SELECT ...]

Prints, over all measuring processes of a sweep of benchmarks/, the part of their wall time after
start-up (imports, backend and the first program done) that lies inside timed regions. Target: 75 %.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from harness.declare import discovery
from harness.engine.context import Options, local_context
from harness.engine.sweep import sweep
from harness.stages import sampling


def main() -> None:
    """Run a sweep and print the share."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("select", nargs="*", metavar="SELECT")
    parser.add_argument("--effort", default="default")
    options = parser.parse_args()
    folder = Path("benchmarks")
    workloads = discovery.select(discovery.discover(folder).workloads, options.select)
    with tempfile.TemporaryDirectory() as results:
        context = local_context(Path(results), folder)
        outcome = sweep(workloads, context, Options(sampling.effort(options.effort)))
    share = outcome.timed_ns / outcome.wall_ns
    print(
        f"{len(workloads)} workloads, {outcome.measured} records at effort {options.effort}: "
        f"{outcome.timed_ns / 1e9:.1f} s of {outcome.wall_ns / 1e9:.1f} s after start-up are "
        f"inside timed regions: {share:.1%} (target: at least 75 %)"
    )


if __name__ == "__main__":
    main()
