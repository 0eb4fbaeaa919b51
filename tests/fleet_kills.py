"""Kill parts of a fleet at random moments, and hold what is left against an undisturbed sweep.

    python -m tests.fleet_kills --rounds 50

A scheduler, three workers (two with a nanny) and a client sweep a suite of small cases. Each round
kills one of them at a random moment: a worker, a nanny, the scheduler, a measuring process or the
client (SIGKILL), or interrupts the client as Ctrl-C does; then what does not run is started again.
When a sweep is complete, it is checked and the next one begins in another results tree.

Every 50 ms all results trees are read, and the key and replicate of every record in them is
remembered. At the end each of them must be in the results tree; every case must be
complete on one machine, with the keys and the rows of a sweep that nobody disturbed; and no process
may be left over.
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
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import psutil

from harness.frame.load import everything
from harness.records.schema import Problems, Record, decode, read_file
from harness.records.store import record_files
from tests.performance.fleet_processes import Fleet, commit, fleet

MACHINES = ("alpha", "beta", "gamma")

VICTIMS = ("worker", "nanny", "scheduler", "measuring process", "client", "interrupt")

WORKLOAD = """
from harness import Workload, spec
{classes}
"""

CLASS = '''

class {name}(Workload):
    """Small."""

    sweep = {{"size": [{sizes}]}}
    targets = ("cpu",)
    process_stages = False

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return {number} * x + 1
'''

FINE, SOME_FAILED, NO_FLEET, INTERRUPTED = 0, 3, 5, 130

Unit = tuple[str, str]
"""The key and the replicate of a record."""


class Watch(threading.Thread):
    """Remembers every record that was ever in a results tree."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.seen: dict[str, dict[Unit, str]] = defaultdict(dict)
        """By the name of the results tree: each record, and the file that it was seen in."""
        self.ended = threading.Event()
        self.looks = 0
        self._read: dict[tuple[Path, int], int] = {}

    def run(self) -> None:
        """Look every 50 ms."""
        while not self.ended.wait(0.05):
            self.look()

    def look(self) -> None:
        """Read what has been added."""
        self.looks += 1
        for path in self.folder.glob("results/*/*/records/*.jsonl"):
            self._look_at(path, path.parents[2].name)

    def _look_at(self, path: Path, tree: str) -> None:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            name = path, os.fstat(file.fileno()).st_ino
            begin = self._read.get(name, 0)
            file.seek(begin)
            content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            self._read[name] = begin + len(whole)
            for line in whole.splitlines():
                record = decode(line)
                if isinstance(record, Record) and record.status == "ok":
                    self.seen[tree].setdefault(
                        (record.key, record.replicate), f"{record.workload} in {path}"
                    )


class Client:
    """The sweep, as a user starts it."""

    def __init__(self, fleet: Fleet, effort: str) -> None:
        self.fleet = fleet
        self.effort = effort
        self.running: subprocess.Popen[bytes] | None = None
        self.ends: Counter[int] = Counter()

    def start(self, results: Path, *more: str) -> None:
        """Start or resume a sweep."""
        command = [sys.executable, "-m", "harness", "run", "--on", self.fleet.address]
        command += ["--effort", self.effort, "--results", str(results), *more]
        self.said = self.fleet.folder / "client.log"
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
        assert self.running is not None
        code = self.running.poll()
        if code is not None:
            self.ends[code] += 1
            # Python itself ends a command that is interrupted while it is being imported.
            allowed = (FINE, SOME_FAILED, NO_FLEET, INTERRUPTED, -signal.SIGKILL, -signal.SIGINT)
            text = self.said.read_text(errors="replace")
            assert code in allowed, f"the client ended with {code}:\n{text}"
        return code

    def complete(self, results: Path, *more: str) -> None:
        """Run until everything has been measured; what failed in a run is measured in the next."""
        for _ in range(5):
            self.start(results, *more)
            assert self.running is not None
            while self.running.poll() is None:
                self.fleet.start()  # a worker may end only when it finds that its scheduler is gone
                time.sleep(0.1)
            if self.ended() == FINE:
                return
        raise AssertionError(f"not complete in five runs:\n{self.said.read_text()}")


def suite(folder: Path, workloads: int, cases: int) -> None:
    """Write the workloads that are measured."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "__init__.py").write_text("")
    sizes = ", ".join(str(8 + number) for number in range(cases))
    classes = "".join(
        CLASS.format(name=f"Small{number}", sizes=sizes, number=number + 2)
        for number in range(workloads)
    )
    (folder / "benchmarks" / "small.py").write_text(WORKLOAD.format(classes=classes))
    commit(folder)


def strike(fleet: Fleet, client: Client, victim: str, rng: random.Random) -> bool:
    """Kill something; return whether it was there."""
    assert client.running is not None
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
            measuring = [p for p in fleet.processes() if "harness.engine.worker" in p.cmdline()]
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


def check(results: Path, undisturbed: Path, each: Path, seen: dict[Unit, str]) -> Counter[str]:
    """Hold a complete sweep against what was seen, and against one that nobody disturbed.

    Raises:
        AssertionError: a record was lost, or the sweep differs.
    """
    found, broken = records(results)
    have = Counter((record.key, record.replicate) for record in found)
    lost = {unit: where for unit, where in seen.items() if unit not in have}
    assert not lost, f"{len(lost)} of {len(seen)} records were lost: {lost}"
    wanted = cases(records(undisturbed)[0])
    keys = cases(records(each)[0])
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
    counts["records that were seen"] += len(seen)
    counts["records in the results trees"] += len(have)
    counts["lines that say again what is there"] += have.total() - len(have)
    counts["that say what became of earlier attempts"] += sum(bool(r.retries) for r in found)
    counts["torn or corrupt lines"] += broken
    counts["rows in the frames"] += len(mine)
    return counts


def campaign(
    rounds: int,
    seed: int,
    effort: str = "6x1",
    workloads: int = 3,
    number: int = 8,
    longest_s: float = 12.0,
    for_s: float = float("inf"),
    say: Any = lambda text: None,
) -> Counter[str]:
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
        suite(on.project, workloads, number)
        on.start()
        on.wait(len(MACHINES))
        client = Client(on, effort)
        results = on.folder / "results"
        began = time.monotonic()
        client.complete(results / "undisturbed")
        took_s = time.monotonic() - began
        say(f"an undisturbed sweep took {took_s:.0f} s")
        Client(on, f"1x{effort.partition('x')[2]}").complete(results / "each", "--each-machine")
        watch = Watch(on.folder)
        watch.start()
        try:
            sweeps = _disturb(on, client, watch, rounds, rng, longest_s, began + for_s, counts, say)
        finally:
            watch.ended.set()
            watch.join()
        watch.look()
        for tree in sweeps:
            counts += check(
                results / tree, results / "undisturbed", results / "each", watch.seen[tree]
            )
        left = on.stop(60.0)
        assert not left, f"left over: {left}"
        counts["sweeps completed"] = len(sweeps)
        counts["looks"] = watch.looks
        counts += Counter({f"clients that ended with {code}": n for code, n in client.ends.items()})
    counts["records lost"] = counts["processes left over"] = 0  # else it had ended before
    return counts


def _disturb(
    on: Fleet,
    client: Client,
    watch: Watch,
    rounds: int,
    rng: random.Random,
    longest_s: float,
    until: float,
    counts: Counter[str],
    say: Any,
) -> list[str]:
    sweeps: list[str] = []

    def begin() -> Path:
        tree = on.folder / "results" / f"sweep-{len(sweeps)}"
        sweeps.append(tree.name)
        return tree

    tree = begin()
    client.start(tree)
    done = 0
    while done < rounds and time.monotonic() < until:
        moment = time.monotonic() + rng.uniform(0.2, longest_s)
        while time.monotonic() < moment:
            time.sleep(0.02)
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
            say(f"{done:3d} {victim}, {sum(map(len, watch.seen.values()))} records seen")
    while client.running and client.running.poll() is None:
        on.start()
        time.sleep(0.1)
    client.ended()
    on.start()
    client.complete(tree, "--wait-for-workers", "60")
    return sweeps


def main() -> None:
    """Run a campaign from the command line and print what happened."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--effort", default="6x1")
    parser.add_argument("--longest", type=float, default=12.0, help="seconds until a kill")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="at most")
    options = parser.parse_args()
    counts = campaign(
        options.rounds,
        options.seed,
        options.effort,
        longest_s=options.longest,
        for_s=options.minutes * 60,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    for what in sorted(counts):
        print(f"{counts[what]:6d} {what}")
    print("No record that had arrived was lost; keys and rows are those of an undisturbed sweep.")


if __name__ == "__main__":
    main()
