"""Kill parts of a fleet at random moments, and hold what is left against an undisturbed sweep.

    python -m tools.fleet_kills --rounds 50

A scheduler, three workers (two with a nanny) and a client sweep a suite of small cases. Each round
kills one of them at a random moment: a worker, a nanny, the scheduler, a measuring process or the
client (SIGKILL), or interrupts the client as Ctrl-C does; then what does not run is started again.
When a sweep is complete, it is checked and the next one begins in another results tree.

All the while the results trees are read: the bytes of all whole lines of records that are there
must be there at every later look. At the end every case must be complete on one machine, with the
keys and the rows of a sweep that nobody disturbed; and no process may be left over.
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
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from harness.frame.load import everything
from harness.records.schema import Problems, Record, read_file
from harness.records.store import record_files
from tools.kills import Ledger, runs
from tools.performance.fleet_processes import Fleet, committed, fleet

MACHINES = ("alpha", "beta", "gamma")

VICTIMS = ("worker", "nanny", "scheduler", "measuring process", "client", "interrupt")

WORKLOAD = """
class Small{number}(Workload):
    sweep = {{"size": {sizes}}}
    targets = ("cpu",)
    process_stages = False

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return {number} * x + 1
"""

EFFORT = "6x1"

FINE, SOME_FAILED, NO_FLEET, INTERRUPTED = 0, 3, 5, 130


class Client:
    """The sweep, as a user starts it."""

    running: subprocess.Popen[bytes]

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.said = fleet.folder / "client.log"
        self.ends: Counter[int] = Counter()

    def start(self, results: Path, *more: str, effort: str = EFFORT) -> None:
        """Start or resume a sweep."""
        command = [sys.executable, "-m", "harness", "run", "--on", self.fleet.address]
        command += ["--effort", effort, "--results", str(results), *more]
        with self.said.open("wb") as log:
            self.running = subprocess.Popen(
                command,
                cwd=self.fleet.project,
                env=self.fleet.environment() | {"HARNESS_COMPUTE": "0"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A shell makes what it runs in the background ignore Ctrl-C.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

    def ended(self) -> int | None:
        """Return how the sweep ended, or None while it runs.

        Raises:
            AssertionError: it ended in a way in which it must not.
        """
        code = self.running.poll()
        if code is not None:
            self.ends[code] += 1
            # Python itself ends a command that is interrupted while it is being imported.
            allowed = (FINE, SOME_FAILED, NO_FLEET, INTERRUPTED, -signal.SIGKILL, -signal.SIGINT)
            text = self.said.read_text(errors="replace")
            assert code in allowed, f"the client ended with {code}:\n{text}"
        return code

    def complete(self, results: Path, *more: str, effort: str = EFFORT) -> None:
        """Run until everything has been measured; what failed in a run is measured in the next."""
        for _ in range(5):
            self.start(results, *more, effort=effort)
            while self.running.poll() is None:
                self.fleet.start()  # a worker may end only when it finds that its scheduler is gone
                time.sleep(0.1)
            if self.ended() == FINE:
                return
        raise AssertionError(f"not complete in five runs:\n{self.said.read_text()}")


def suite(folder: Path, workloads: int, cases: int) -> None:
    """Write the workloads that are measured."""
    sizes = list(range(8, 8 + cases))
    classes = [WORKLOAD.format(number=number + 2, sizes=sizes) for number in range(workloads)]
    text = "\n".join(["from harness import Workload, spec", *classes])
    committed(folder, {"small": text})


def strike(fleet: Fleet, client: Client, victim: str, rng: random.Random) -> bool:
    """Kill something; return whether it was there."""
    if victim in ("client", "interrupt"):
        if client.running.poll() is not None:
            return False
        client.running.send_signal(signal.SIGKILL if victim == "client" else signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.running.wait(timeout=20)
        # Some library that is being imported may swallow a Ctrl-C: a user presses it again.
        while client.running.poll() is None:
            client.running.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.running.wait(timeout=20)
        return True
    with contextlib.suppress(psutil.NoSuchProcess):
        if victim == "scheduler":
            fleet.process("scheduler").kill()
        elif victim == "nanny":
            nannies = [name for name in fleet.machines if name not in fleet.bare]
            psutil.Process(fleet.running[rng.choice(nannies)].pid).kill()
        elif victim == "worker":
            fleet.process(rng.choice(fleet.machines)).kill()
        else:
            measuring = [p for p in fleet.processes() if runs(p, "harness.engine.worker")]
            if not measuring:
                return False
            rng.choice(measuring).kill()
        return True
    return False


def records(results: Path) -> tuple[list[Record], int]:
    """Return every record of a tree that is `ok`, repeated ones too, and how many lines are not."""
    problems = Problems()
    found = [record for file in record_files(results) for record in read_file(file, problems)]
    return [r for r in found if r.status == "ok"], problems.torn + problems.corrupt


def cases(found: list[Record]) -> dict[tuple[Any, ...], dict[str, dict[str, str]]]:
    """Return by case and machine the key of each process that has a record."""
    by_case: dict[tuple[Any, ...], dict[str, dict[str, str]]] = {}
    for record in found:
        if record.workload not in ("process", "reference"):
            case = (record.workload, *sorted(record.axes.items()), record.transform, record.target)
            machine = by_case.setdefault(case, {}).setdefault(record.machine, {})
            machine[record.replicate] = record.key
    return by_case


COLUMNS = ["workload", "size", "transform", "target", "stage", "unit", "status", "n_processes"]


def rows(results: Path, chosen: dict[tuple[str, int], str]) -> Any:
    """Return the rows of a tree, of each case those of its machine."""
    frame = everything(results)
    frame = frame[~frame["workload"].isin(["process", "reference"])]
    on = [chosen.get((w, int(s))) for w, s in zip(frame["workload"], frame["size"], strict=True)]
    frame = frame[frame["machine"] == on]
    return frame[COLUMNS].sort_values(COLUMNS).reset_index(drop=True)


def check(results: Path, undisturbed: Path, each: Path) -> Counter[str]:
    """Hold a complete sweep against one that nobody disturbed.

    Raises:
        AssertionError: the sweep differs.
    """
    found, broken = records(results)
    wanted, keys = (cases(records(tree)[0]) for tree in (undisturbed, each))
    by_case = cases(found)
    assert by_case.keys() == wanted.keys(), f"{by_case.keys() ^ wanted.keys()}"
    counts: Counter[str] = Counter()
    chosen: dict[tuple[str, int], str] = {}
    reference: dict[tuple[str, int], str] = {}
    for case, machines in by_case.items():
        ((only, replicates),) = wanted[case].items()
        whole = [name for name, there in machines.items() if there.keys() == replicates.keys()]
        assert whole, f"{case} is complete on no machine; there is {machines}"
        name = case[0], int(dict([case[1]])["size"])
        chosen[name], reference[name] = whole[0], only
        for machine, there in machines.items():
            (key,) = keys[case][machine].values()
            assert set(there.values()) == {key}, f"{case} on {machine}: {there}, not {key}"
            # A machine that was gone was measured for by another.
            counts["of a second machine"] += len(there) if machine != whole[0] else 0
    mine, theirs = rows(results, chosen), rows(undisturbed, reference)
    assert mine.equals(theirs), f"{mine}\n{theirs}"
    have = {(record.key, record.replicate) for record in found}
    counts["records in the results trees"] += len(have)
    counts["lines that say again what is there"] += len(found) - len(have)
    counts["that say what became of earlier attempts"] += sum(bool(r.retries) for r in found)
    counts["torn or corrupt lines"] += broken
    counts["rows in the frames"] += len(mine)
    return counts


def campaign(rounds: int, seed: int, longest_s: float, minutes: float) -> Counter[str]:
    """Disturb sweeps `rounds` times, complete them, and check them; return what happened.

    Raises:
        AssertionError: a record was lost, a sweep differs, or a process was left over.
    """
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as scratch,
        fleet(Path(scratch), MACHINES, bare=("gamma",)) as on,
    ):
        suite(on.project, 3, 8)
        on.start()
        on.wait(len(MACHINES))
        client = Client(on)
        results = on.folder / "results"
        until = time.monotonic() + 60 * minutes
        client.complete(results / "undisturbed")
        client.complete(results / "each", "--each-machine", effort="1x1")
        trees = _disturb(on, client, rounds, rng, longest_s, until, counts)
        for tree in trees:
            counts += check(tree, results / "undisturbed", results / "each")
        left = on.stop(60.0)
        assert not left, f"left over: {left}"
        counts["sweeps completed"] = len(trees)
        counts += Counter({f"clients that ended with {code}": n for code, n in client.ends.items()})
    counts["records lost"] = counts["processes left over"] = 0  # else it had ended before
    return counts


def _disturb(
    on: Fleet,
    client: Client,
    rounds: int,
    rng: random.Random,
    longest_s: float,
    until: float,
    counts: Counter[str],
) -> dict[Path, Ledger]:
    """Disturb a sweep after the other; return their trees, each with the records seen in it."""
    trees: dict[Path, Ledger] = {}

    def begin() -> Path:
        tree = on.folder / "results" / f"sweep-{len(trees)}"
        trees[tree] = Ledger(tree)
        return tree

    def look() -> None:
        counts["looks"] += 1
        lost = [one for ledger in trees.values() for one in ledger.look()]
        assert not lost, f"records were lost from {lost}"

    tree = begin()
    client.start(tree)
    done = 0
    while done < rounds and time.monotonic() < until:
        moment = time.monotonic() + rng.uniform(0.2, longest_s)
        while time.monotonic() < moment:
            time.sleep(0.02)
            look()
            on.start()
            code = client.ended()
            if code is not None:
                if code == FINE:
                    tree = begin()
                client.start(tree)
        victim = rng.choice(VICTIMS)
        if strike(on, client, victim, rng):
            done += 1
            counts[f"kills: {victim}"] += 1
            print(f"{done:3d} {victim}", file=sys.stderr, flush=True)
    while client.running.poll() is None:
        on.start()
        time.sleep(0.1)
    client.ended()
    client.complete(tree, "--wait-for-workers", "60")
    look()
    counts["bytes of records held against"] = sum(ledger.size for ledger in trees.values())
    return trees


def main() -> None:
    """Run a campaign from the command line and print what happened."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=12.0, help="seconds until a kill")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="at most")
    given = parser.parse_args()
    counts = campaign(given.rounds, given.seed, given.longest, given.minutes)
    for what in sorted(counts):
        print(f"{counts[what]:6d} {what}")
    print("No record that had arrived was lost; keys and rows are those of an undisturbed sweep.")


if __name__ == "__main__":
    main()
