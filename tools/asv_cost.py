"""What the harness costs in asv: the plugin in `asv run` on plain benchmarks, and discovery.

    python -m tools.asv_cost [--rounds 10]
    python -m tools.asv_cost discovery

The first runs `asv run` on 20 plain benchmarks at asv's own settings, with the plugin and without,
in turns and in both orders; it prints the medians of wall time and of CPU time, asv's children
included, and of the ratios of neighbours. The second has 20 files with a workload of 250 cases each
and times `harness list` and asv's discovery of them.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.asv.project import INIT, Project

PLAIN = "".join(f"def time_{n}():\n    sum(range({1000 * n}))\n\n\n" for n in range(1, 21))

MANY = """
from harness import Workload, spec


class Case{number}(Workload):
    sweep = {{"size": list(range(1, 126)), "kind": ["a", "b"]}}
    static = ("kind",)
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x, kind):
        return x + 1
"""


def taken(project: Project, *words: str) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of asv and its children."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    project.asv(*words, timeout_s=900)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, sum(after[:2]) - sum(before[:2])


def plugin(rounds: int, folder: Path) -> None:
    """Print what the plugin adds to `asv run` on plain benchmarks."""
    arms = {}
    for name, plugins in (("alone", []), ("plugin", [".harness.asv.environment"])):
        arms[name] = Project(folder / name, {"plain": PLAIN}, plugins=plugins)
        arms[name].write("benchmarks/__init__.py", "")
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in arms}
    for number in range(-1, rounds):  # the first of each warms the disk
        for name in list(arms)[:: 1 if number % 2 else -1]:
            shutil.rmtree(arms[name].results, ignore_errors=True)
            words = ("run", "-E", "existing", "--set-commit-hash", "HEAD")
            seconds = taken(arms[name], *words)
            if number >= 0:
                took[name].append(seconds)
                print(f"{name}: {seconds[0]:.2f} s, CPU {seconds[1]:.2f} s", flush=True)
    for at, clock in enumerate(("wall", "CPU")):
        alone, with_it = ([one[at] for one in took[name]] for name in arms)
        ratios = [b / a for a, b in zip(alone, with_it, strict=True)]
        medians = statistics.median(alone), statistics.median(with_it)
        print(
            f"{clock}: {medians[0]:.2f} s alone, {medians[1]:.2f} s with the plugin "
            f"({medians[1] / medians[0] - 1:+.1%}); median of {rounds} neighbours "
            f"{statistics.median(ratios) - 1:+.1%}, from {min(ratios) - 1:+.1%} to "
            f"{max(ratios) - 1:+.1%}"
        )


def discovery(folder: Path) -> None:
    """Print how long 20 files of 250 cases each take to be discovered."""
    files = {f"many{number}": MANY.format(number=number) for number in range(20)}
    project = Project(folder / "many", files)
    project.write("benchmarks/__init__.py", INIT)
    listing = [sys.executable, "-m", "harness"]
    for name, asv, words in (
        ("harness list", listing, ("list", "--benchmarks", "benchmarks")),
        ("harness list --help", listing, ("list", "--help")),
        ("asv's discovery", None, ("check", "-E", "existing")),
    ):
        each = []
        for _ in range(5):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            project.asv(*words, asv=asv, timeout_s=900)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            each.append((time.monotonic() - began, sum(after[:2]) - sum(before[:2])))
        wall, cpu = (statistics.median(one) for one in zip(*each, strict=True))
        print(f"{name}: {wall:.2f} s, CPU {cpu:.2f} s (median of {len(each)})", flush=True)


def main() -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", nargs="?", choices=("plugin", "discovery"), default="plugin")
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's asv compiles modules once
    with tempfile.TemporaryDirectory() as folder:
        if given.part == "plugin":
            plugin(given.rounds, Path(folder))
        else:
            discovery(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
