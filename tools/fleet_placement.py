"""Where cases are measured over five commits, with a worker missing in two of them.

    python -m tools.fleet_placement

Three workers in two classes of machine (HARNESS_CLASS): two hosts of `small`, one of `large`. At
the second commit one of `small` is away, at the fourth the one of `large`, whose cases nobody else
may measure: that sweep ends with exit code 5. Printed are, by commit, the exit code, how many cases
each class measured, and how many are not where they were at the first commit.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import psutil

from harness.records.store import Store, record_files
from tests.repositories import git
from tools.fleet_kills import suite
from tools.performance.fleet_processes import Fleet, commit

CLASSES = {"one": "small", "two": "small", "three": "large"}
AWAY = (None, "two", None, "three", None)


class Classed(Fleet):
    """A fleet whose machines are in classes."""

    def environment(self, machine: str = "") -> dict[str, str]:
        """Return the environment of a process of the fleet."""
        found = super().environment(machine)
        return found | {"HARNESS_CLASS": CLASSES[machine]} if machine else found


def main() -> None:
    """Measure five commits and print what was measured where."""
    first: dict[tuple[object, ...], str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        on = Classed(Path(scratch), list(CLASSES))
        suite(on.project, 4, 2)
        try:
            for number, away in enumerate(AWAY, 1):
                (on.project / "version.txt").write_text(str(number))
                commit(on.project)
                on.machines = [name for name in CLASSES if name != away]
                if away:
                    for process in [*psutil.Process(on.running[away].pid).children(True)]:
                        process.kill()
                    on.running.pop(away).kill()
                on.start()
                command = [sys.executable, "-m", "harness", "run", "--on", on.address]
                more = ["--wait-for-workers", "60"] if not away else []
                done = subprocess.run(
                    [*command, "--effort", "1x1", *more],
                    cwd=on.project,
                    env=on.environment() | {"HARNESS_COMPUTE": "0"},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                found = where(on.project)
                first = first or found
                moved = sum(first[case] != name for case, name in found.items())
                print(
                    f"commit {number}, away: {away}: exit {done.returncode}, "
                    f"{dict(Counter(found.values()))}, moved: {moved}, "
                    f"not measured: {len(first.keys() - found)}",
                    *[line for line in done.stderr.splitlines() if "stay with" in line],
                    flush=True,
                )
        finally:
            on.stop(5.0)


def where(project: Path) -> dict[tuple[object, ...], str]:
    """Return the class that measured each case of the newest commit."""
    newest = git(project, "rev-parse", "HEAD")
    return {
        (record.workload, *record.axes.items()): record.machine
        for file in record_files(project / "results")
        for record in Store(file).read()
        if record.commit == newest and record.workload not in ("process", "reference")
    }


if __name__ == "__main__":
    main()
