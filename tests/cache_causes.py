"""How often `harness cache explain` gives the cause that an expert gives.

    python -m tests.cache_causes [NAME...]

Does each pair of runs of tests/cache/causes.py, or those whose names have one of the words, in
processes of their own. It prints what is wrong, and how many are right; exit code 1 below 94 %.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from harness.watch import jax_names
from tests.cache import causes
from tests.cache.probe.bench import NotApplicable

ENOUGH = 60 / 64


def main(words: list[str]) -> int:
    """Run them, and say how many are right."""
    chosen = [one for one in causes.CASES if not words or any(w in one.name for w in words)]
    right = skipped = 0
    with tempfile.TemporaryDirectory(prefix="harness-causes-") as folder, causes.forked():
        runs = causes.Runs(Path(folder))
        for case in chosen:
            try:
                found = case.explained(runs)
            except NotApplicable as reason:
                skipped += 1
                print(f"{case.name}: cannot be tried here: {reason}", flush=True)
                continue
            except AssertionError as error:  # a process that failed
                print(f"{case.name}: {str(error)[-600:]}", flush=True)
                continue
            if case.is_right(found):
                right += 1
            else:
                print(f"{case.name}: {found.verdict}", flush=True)
                print(*(f"      {line}" for d in found.differences for line in d.lines), sep="\n")
    asked = len(chosen) - skipped
    print(f"jax {jax_names.version()}: {right} of {asked} right", flush=True)
    return right < ENOUGH * asked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
