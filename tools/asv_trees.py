"""Whether results of foreign asv trees are read as asv itself reads them.

    python -m tools.asv_trees CLONES        the public ones of the table below
    python -m tools.asv_trees TREE...       others

CLONES is a folder with a clone of each repository of :data:`PUBLIC`, bare or not, as OWNER/NAME; of
each the results folder of the commit that the table names is read. A TREE is the results folder of
an asv project: the one that holds benchmarks.json. Each result file is read by asv and by
`harness.load`, and what both say of every case is compared: its value, the ends of its interval and
how many samples it rests on. Exit code 1 if any differs, or is in one of them only, or a tree is
not there.
"""

from __future__ import annotations

import argparse
import itertools
import math
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from asv.results import Results
from asv.util import UserError

from harness.frame.load import everything

PUBLIC = {
    "AdirondaxProject/adirondax-benchmarks": ("925b0d9425eb", "results"),
    "kedro-org/kedro-benchmark-results": ("ea5683f69ab5", ".asv/results"),
    "xdslproject/xdsl-bench": ("ad1016468ea2", ".asv/results"),
    "vaexio/vaex-asv": ("b48b446cf2da", ".asv/results"),
    "NCAR/geocat-comp-asv": ("e34e9d02a7cf", "results"),
    "MridulS/nx-benchmarks": ("08966af32a02", "results"),
    "hchau630/torch-bessel": ("ef054250f877", ".asv/results"),
    "openmc-dev/openmc-performance-bench": ("217999a3e977", ".asv/results"),
    "Unidata/MetPy-benchmark": ("d7e4c144d5c6", "results"),
    "UXARRAY/uxarray-asv": ("c48d3a311e2f", "results"),
    "emsig/emg3d-bench": ("dbc965471953", "results"),
    "pv/scipy-bench": ("32e8a2eb31e6", "results"),
}
"""Public trees: repository, commit, and the results folder in it. None of it is in this one."""

Cell = tuple[float, float, float, float]
"""Value, both ends of the interval, and number of samples; NaN where there is none."""


def _finite(value: object) -> float:
    """Return a number, NaN for what is none or infinite: a frame holds no infinite ends."""
    number = float(value) if isinstance(value, int | float) else math.nan
    return number if math.isfinite(number) else math.nan


def of_asv(file: Path) -> dict[str, list[Cell]]:
    """Return the cells of each benchmark as asv reads them."""
    results = Results.load(str(file))

    def cells(name: str) -> Iterator[Cell]:
        params = results.get_result_params(name)
        stats = results.get_result_stats(name, params)
        for value, stat in zip(results.get_result_value(name, params), stats, strict=True):
            about: dict[str, Any] = stat or {}
            keys = ("ci_99_a", "ci_99_b", "repeat")
            yield (_finite(value), *(_finite(about.get(key)) for key in keys))

    return {name: list(cells(name)) for name in results.get_all_result_keys()}


def of_harness(file: Path) -> dict[str, list[Cell]]:
    """Return the same as `harness.load` reads it."""
    columns = everything(file)[["workload", "value", "low", "high", "n_samples"]]
    found: dict[str, list[Cell]] = {}
    for name, *cell in columns.itertuples(index=False):
        found.setdefault(name, []).append(tuple(map(float, cell)))  # type: ignore[arg-type]
    return found


def is_same(of_asv: Cell, of_harness: Cell) -> bool:
    """Tell whether both say the same of a case; a number of samples that asv does not store is 1
    of what is no time, and 0 of a time or of a case without a value."""
    *numbers, n = of_asv
    *others, m = of_harness
    same = all(a == b or (a != a and b != b) for a, b in zip(numbers, others, strict=True))
    return same and (m == n if n == n and numbers[0] == numbers[0] else m in (0, 1))


def compared(tree: Path) -> Counter[str]:
    """Return how many cells of a tree are equal, different, or read by one side alone."""
    counts: Counter[str] = Counter()
    for file in sorted(tree.glob("*/*.json")):
        if file.name == "machine.json":
            continue
        try:
            theirs = of_asv(file)
        except UserError:  # a format that asv itself wants `asv update` for
            counts["files of another format"] += 1
            continue
        except (OSError, ValueError, KeyError):  # no results of asv's
            counts["files that asv cannot read"] += 1
            continue
        ours = of_harness(file)
        counts["files"] += 1
        for name in theirs.keys() | ours.keys():
            a, b = theirs.get(name, []), ours.get(name, [])
            counts["in one only"] += abs(len(a) - len(b))
            for one, other in zip(a, b, strict=False):
                counts["equal" if is_same(one, other) else "different"] += 1
    return counts


def public(clones: Path, folder: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield the name of each public tree, and where its results are now; None without a clone."""
    for name, (commit, results) in PUBLIC.items():
        clone, archive = clones / name, folder / "archive.tar"
        command = ["git", "-C", str(clone), "archive", "-o", str(archive), commit, results]
        if (
            not clone.exists()
            or subprocess.run(command, capture_output=True, check=False).returncode
        ):
            yield name, None
            continue
        with tarfile.open(archive) as members:
            members.extractall(folder / name, filter="data")
        yield f"{name} {commit[:8]}", folder / name / results


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per tree; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", nargs="+", type=Path, metavar="TREE")
    warnings.simplefilter("ignore")
    given = parser.parse_args(arguments).trees
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        own = ((str(tree), tree) for tree in given if list(tree.glob("*/*.json")))
        clones = (public(one, Path(folder)) for one in given if not list(one.glob("*/*.json")))
        for name, tree in itertools.chain(own, *clones):
            counts = compared(tree) if tree else Counter({"trees that are not there": 1})
            texts = (f"{count:,} {what}" for what, count in counts.items() if count)
            print(f"{name}: {', '.join(texts)}", flush=True)
            total += counts
    print(f"all: {', '.join(f'{n:,} {what}' for what, n in total.items())}")
    wrong = ("different", "in one only", "trees that are not there")
    return int(any(total[what] for what in wrong))


if __name__ == "__main__":
    sys.exit(main())
