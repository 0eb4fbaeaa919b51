"""Kill a night at random moments, again and again, and hold what it ends with against a whole one.

    python -m tests.nightly_kills --rounds 20

Each round starts or resumes the same night of a small suite and kills it at a random moment: the
night itself (SIGKILL), the night and all that it started, or it is interrupted as Ctrl-C does. At
the end one more run completes it. Its records must have the keys of a night that was never
disturbed, and its rows, steps and numbers of verdicts must be the same.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from tests.asv.project import Project
from tests.nightly.nights import TINY, keys, nightly, outcome, words

FIRST, SECOND = "2026-11-20", "2026-11-21"
TWO = TINY.replace(
    '    targets = ("cpu",)', '    sweep = {"size": [8, 16]}\n    targets = ("cpu",)'
)
TWO = TWO.replace("self):\n        return spec((8,))", "self, size):\n        return spec((size,))")


def disturb(project: Project, effort: str, rng: random.Random, longest_s: float) -> str:
    """Run the night, kill it, and return how; "finished" if it was too fast."""
    running = subprocess.Popen(
        [sys.executable, "-m", "harness", *words(night=SECOND, effort=effort)],
        cwd=project.folder,
        env=project.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # A shell makes what it runs in the background ignore Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(rng.uniform(0.2, longest_s))
    if running.poll() is not None:
        return "finished"
    how = rng.choice(["night", "everything", "interrupt"])
    if how == "everything":
        for child in psutil.Process(running.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    while running.poll() is None:
        running.send_signal(signal.SIGINT if how == "interrupt" else signal.SIGKILL)
        # Some library that is being imported may swallow a Ctrl-C: a user presses it again.
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(timeout=5)
    return how


def whole(folder: Path, effort: str, rounds: int, rng: random.Random, longest_s: float) -> Any:
    """Do two nights of a project, the second with disturbances; return what came of it."""
    project = Project(folder, {"tiny": TWO})
    began = time.monotonic()
    nightly(project, night=FIRST, effort=effort)
    # Long enough to get past the start; short enough for many kills in one night.
    longest_s = longest_s or max(3.0, (time.monotonic() - began) / 4)
    counts: dict[str, int] = {}
    before: set[tuple[str, str]] = set()
    for number in range(rounds):
        how = disturb(project, effort, rng, longest_s)
        counts[how] = counts.get(how, 0) + 1
        after = keys(project, SECOND)
        assert before <= after, f"round {number}, {how}: {before - after} lost"
        before = after
    counts["records before the last run"] = len(before)
    done = subprocess.run(
        [sys.executable, "-m", "harness", *words(night=SECOND, effort=effort)],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
    )
    # Two quiet nights of the same program may differ in a verdict: the machine is a real one.
    assert done.returncode in (0, 1), f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    found = outcome(project, SECOND)
    # Keys hold the commit, which is another in each of the two repositories.
    found["records"] = sorted(number for _, number in found["records"])
    return found, counts


def campaign(
    rounds: int, seed: int, effort: str = "20x1", longest_s: float = 0.0
) -> dict[str, int]:
    """Disturb a night `rounds` times and complete it; return what happened, counted.

    Raises:
        AssertionError: a record was lost, or the night ended with other rows or verdicts.
    """
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        disturbed, counts = whole(Path(folder) / "disturbed", effort, rounds, rng, longest_s)
        quiet, _ = whole(Path(folder) / "quiet", effort, 0, rng, longest_s)
    for found in (disturbed, quiet):
        assert found.pop("exit code") in (0, 1)
    assert disturbed == quiet, f"{disturbed}\n{quiet}"
    counts["records"] = len(quiet["records"])
    counts["rows that are ok"] = sum(rows["ok"] for rows in quiet["rows"])
    counts["verdicts"] = sum(number for *_, number in quiet["judged"])
    return counts


def main() -> None:
    """Run a campaign from the command line and print what happened."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--effort", default="20x1")
    parser.add_argument("--longest", type=float, default=0.0, help="seconds until a kill")
    options = parser.parse_args()
    counts = campaign(options.rounds, options.seed, options.effort, options.longest)
    for what, count in counts.items():
        print(f"{count:6d} {what}")
    print("No record was lost; rows, steps and numbers of verdicts are those of a whole night.")


if __name__ == "__main__":
    main()
