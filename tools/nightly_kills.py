"""Kill a night at random moments, again and again, and hold what it ends with against a whole one.

    python -m tools.nightly_kills --rounds 30

Each round starts or resumes the same night of a small suite, at once after the one before, and ends
it at a random moment: the night, its process group, what keeps its command, all of it or one by
one, with SIGKILL; or with SIGTERM, or Ctrl-C. All the while its processes are counted: none may be
left, and no two may measure at once. Whatever records a file had before a kill it must have at the
end, byte for byte. One more run completes the night: its records must have the keys of a night that
was never disturbed, and its rows and numbers of verdicts must be the same. With `--python`, which
may be repeated, both nights are measured in these environments.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.asv.project import Project
from tests.nightly.nights import TINY, keys, nightly, outcome, words
from tests.started import TOKEN
from tools.kills import Ledger

FIRST, SECOND = "2026-11-20", "2026-11-21"
TWO = TINY.replace("    targets", '    sweep = {"size": [8, 16]}\n    targets')
TWO = TWO.replace("self):\n        return spec((8,))", "self, size):\n        return spec((size,))")

PYTHONS: list[str] = []
"""`--python` and an interpreter, for each environment that is measured in; none for this one."""

LOOK_S = 0.03
"""How often processes are counted."""

LEFT_S = 10.0
"""What is there so long after a kill is left over."""

WAYS = ("night", "group", "everything", "SIGTERM", "Ctrl-C")


@dataclass
class Watch:
    """Looks at all processes of a night's rounds, until it is told to stop."""

    of: str = ""
    """What the names of rounds begin with: other campaigns may run on this machine."""
    killed_at: dict[str, float] = field(default_factory=dict)
    """By round, on the monotonic clock."""
    seen_at: dict[str, float] = field(default_factory=dict)
    """When a process of a round was last seen."""
    at_once: int = 0
    """The most processes that measured at one moment."""
    looks: int = 0
    _rounds: dict[psutil.Process, str] = field(default_factory=dict)

    def __enter__(self) -> Watch:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def left(self) -> int:
        """Return of how many rounds a process was there long after the kill."""
        times = ((self.seen_at.get(name, 0.0), at) for name, at in self.killed_at.items())
        return sum(seen > at + LEFT_S for seen, at in times)

    def longest_s(self) -> float:
        """Return how long after a kill a process of its round was last seen."""
        return max(self.seen_at.get(name, at) - at for name, at in self.killed_at.items())

    def _go_on(self) -> None:
        while not self._over.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        measuring = 0
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process not in self._rounds:
                    self._rounds[process] = process.environ().get(TOKEN, "")
                name = self._rounds[process]
                if name and name.startswith(self.of) and process.status() != psutil.STATUS_ZOMBIE:
                    self.seen_at[name] = time.monotonic()
                    measuring += _measures(process)
        self.at_once = max(self.at_once, measuring)
        self.looks += 1


def _measures(process: psutil.Process) -> bool:
    """Tell whether it is a measuring process: started, or forked from the parent of such."""
    command = process.cmdline()
    if "harness.measure.parent" in command:
        above = process.parent()
        return above is not None and "harness.measure.parent" in above.cmdline()
    return "harness.measure.worker" in command


def _begin(project: Project, effort: str, name: str, output: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *words(*PYTHONS, night=SECOND, effort=effort)],
        cwd=project.folder,
        env={**project.environment, TOKEN: name},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        text=True,
        process_group=0,
        # A shell makes what it runs in the background ignore Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def disturb(
    project: Project, effort: str, rng: random.Random, longest_s: float, name: str, watch: Watch
) -> str:
    """Run the night, end it, and return how; "finished" if it was too fast."""
    running = _begin(project, effort, name, subprocess.DEVNULL)
    time.sleep(rng.uniform(0.2, longest_s))
    if running.poll() is not None:
        return "finished"
    how = rng.choice(WAYS)
    below = psutil.Process(running.pid).children(recursive=True)
    watch.killed_at[name] = time.monotonic()
    if how == "everything":
        for child in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    number = {"SIGTERM": signal.SIGTERM, "Ctrl-C": signal.SIGINT}.get(how, signal.SIGKILL)
    while running.poll() is None:
        (os.killpg if how == "group" else os.kill)(running.pid, number)
        # Some library that is being imported may swallow a Ctrl-C: a user presses it again.
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(timeout=5)
    return how


def whole(
    folder: Path, effort: str, rounds: int, rng: random.Random, longest_s: float
) -> tuple[Any, dict[str, float]]:
    """Do two nights of a project, the second with disturbances; return what came of it."""
    project = Project(folder, {"tiny": TWO})
    began = time.monotonic()
    nightly(project, *PYTHONS, night=FIRST, effort=effort)
    # Long enough to get past the start; short enough for many kills in one night.
    longest_s = longest_s or max(3.0, (time.monotonic() - began) / 4)
    counts: Counter[str] = Counter()
    ledger = Ledger(project.results)
    with Watch() as watch:
        for number in range(rounds):
            counts[disturb(project, effort, rng, longest_s, f"round {number}", watch)] += 1
            assert not ledger.look(), f"round {number}: records are lost"
        ended = ledger.size
        counts["records before the last run"] = len(keys(project, SECOND))
        done = _begin(project, effort, "the last run", subprocess.PIPE)
        said = done.communicate()
        time.sleep(LEFT_S if rounds else 0)
    # Two quiet nights of the same program may differ in a verdict: the machine is a real one.
    assert done.returncode in (0, 1), f"{done.returncode}\n{said}"
    assert not ledger.look(), "records are lost"
    counts["bytes of records that were there at a kill, and at the end"] = ended
    found = outcome(project, SECOND)
    # Keys hold the commit, which is another in each of the two repositories.
    found["records"] = sorted(number for _, number in found["records"])
    if rounds:
        counts["rounds with a process left over"] = watch.left()
        counts["processes that measured at once, at most"] = watch.at_once
        counts["looks at all processes"] = watch.looks
        longest_ms = round(watch.longest_s() * 1e3)
        counts["ms from a kill to the end of its last process, at most"] = longest_ms
    return found, counts


def campaign(
    rounds: int, seed: int, effort: str = "20x1", longest_s: float = 0.0
) -> dict[str, float]:
    """Disturb a night `rounds` times and complete it; return what happened, counted.

    Raises:
        AssertionError: a process was left over or measured beside another, a record was lost, or
            the night ended with other rows or verdicts.
    """
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("HARNESS_LOCKS", folder)  # others on this machine do not count
        disturbed, counts = whole(Path(folder) / "disturbed", effort, rounds, rng, longest_s)
        quiet, _ = whole(Path(folder) / "quiet", effort, 0, rng, longest_s)
    assert counts["rounds with a process left over"] == 0, counts
    assert counts["processes that measured at once, at most"] == 1, counts
    assert disturbed == quiet, f"{disturbed}\n{quiet}"
    counts["records"] = len(quiet["records"])
    counts["rows that are ok"] = sum(one["rows"]["ok"] for one in quiet["measured"])
    counts["verdicts"] = sum(one["counts"] for one in quiet["measured"])
    return counts


def main() -> None:
    """Run a campaign from the command line and print what happened."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--effort", default="20x1")
    parser.add_argument("--longest", type=float, default=0.0, help="seconds until a kill")
    parser.add_argument("--python", action="append", default=[], help="an environment")
    options = parser.parse_args()
    PYTHONS.extend(word for python in options.python for word in ("--python", python))
    counts = campaign(options.rounds, options.seed, options.effort, options.longest)
    for what, count in counts.items():
        print(f"{count:7d} {what}")
    print("No process was left over, none measured beside another, and no record was lost; rows")
    print("and numbers of verdicts are those of a whole night.")


if __name__ == "__main__":
    main()
