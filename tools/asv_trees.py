"""Whether results of foreign asv trees are read as asv itself reads them.

    python -m tools.asv_trees TREE...

A TREE is the results folder of an asv project: the one that holds benchmarks.json. Each result file
is read by asv and by `harness.load`, and every value of every case is compared. Exit code 1 if any
differs, or is in one of them only.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from asv.results import Results
from asv.util import UserError

from harness.frame.load import everything


def of_asv(file: Path) -> dict[str, list[float]]:
    """Return the values of each benchmark as asv reads them, NaN for those without one."""
    results = Results.load(str(file))
    return {
        name: [
            math.nan if value is None else float(value)
            for value in results.get_result_value(name, results.get_result_params(name))
        ]
        for name in results.get_all_result_keys()
    }


def of_harness(file: Path) -> dict[str, list[float]]:
    """Return the same as `harness.load` reads it."""
    frame = everything(file)
    return {
        str(name): own.to_list() for name, own in frame.groupby("workload", sort=False)["value"]
    }


def compared(tree: Path) -> Counter[str]:
    """Return how many values of a tree are equal, different, or read by one side alone."""
    counts: Counter[str] = Counter()
    for file in sorted(tree.glob("*/*.json")):
        if file.name == "machine.json":
            continue
        try:
            theirs, ours = of_asv(file), of_harness(file)
        except UserError:  # a format that asv itself wants `asv update` for
            counts["files of another format"] += 1
            continue
        counts["files"] += 1
        for name in theirs.keys() | ours.keys():
            a, b = theirs.get(name, []), ours.get(name, [])
            counts["in one only"] += abs(len(a) - len(b))
            for one, other in zip(a, b, strict=False):
                same = one == other or (math.isnan(one) and math.isnan(other))
                counts["equal" if same else "different"] += 1
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per tree; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", nargs="+", type=Path, metavar="TREE")
    warnings.simplefilter("ignore")
    wrong = 0
    for tree in parser.parse_args(arguments).trees:
        counts = compared(tree)
        wrong += counts["different"] + counts["in one only"]
        print(
            f"{tree}: {counts['files']} files, {counts['equal']} values equal, "
            f"{counts['different']} different, {counts['in one only']} in one only, "
            f"{counts['files of another format']} files of another format"
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
