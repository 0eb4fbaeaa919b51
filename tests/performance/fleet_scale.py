"""Units that measure nothing, through a real scheduler: how many a second, and what they leave.

    python -m tests.performance.fleet_scale [--units 100000] [--workers 8] [--workloads 1000]

Drives the client of `harness run --on ... --store` itself, over a real scheduler and real workers,
each in a process of its own that says that it is a machine of its own. The suite is real too: each
of its workloads has `units / workloads` processes; every unit is an order of the plan's. All is
done that is done for a unit, but for starting a process that measures: its record is made up, of
about three kilobytes, and put into the store.

Printed are units per second, units that were lost or came back twice, records in the store, and
memory of the client and of the scheduler along the way: the slope over the last three quarters of
the units, in bytes per unit.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import psutil

from harness.declare import discovery
from harness.engine.context import Options, local_context
from harness.errors import FleetError
from harness.fleet import order as orders
from harness.fleet import sweep
from harness.fleet.pools import DaskPool, connect
from harness.fleet.workers import Seat
from harness.records.store import record_files
from harness.stages import sampling
from tests.performance import command
from tests.performance.fleet_processes import committed, fleet

TARGET_PER_S = 250
SAMPLES = 100
PER_FILE = 10

WORKLOAD = '''

class Noop{number}(Workload):
    """Not measured."""

    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return x + {number}
'''


class Counting(DaskPool):
    """Dask's workers; what comes back is counted."""

    def watch(self, units: int, others: dict[str, list[psutil.Process]]) -> None:
        """Begin to count: so many units, and the client's, scheduler's and workers' processes."""
        self.others = others
        self.every = max(1, units // SAMPLES)
        self.back: Counter[tuple[str, int]] = Counter()
        self.failed: list[str] = []
        self.memory: list[tuple[int, int, int]] = []
        self.began = 0.0

    def submit(self, order: bytes, address: str, seat: Seat, target: str) -> Future[bytes]:
        """Send an order."""
        if not self.began:
            self.spent = {who: cpu_s(them) for who, them in self.others.items()}
            self.began = time.monotonic()
        asked = orders.decode_order(order)
        future = super().submit(order, address, seat, target)
        unit = asked.job.group, asked.job.process
        future.add_done_callback(lambda done: self._count(unit, done))
        return future

    def _count(self, unit: tuple[str, int], done: Future[bytes]) -> None:
        error = None if done.cancelled() else done.exception()
        if done.cancelled() or error or orders.decode_result(done.result()).refused:
            self.failed.append(f"{unit}: {error}")
            return
        self.back[unit] += 1
        self._sample(self.back.total())

    def _sample(self, count: int) -> None:
        if count % self.every == 0:
            sizes = [self.others[who][0].memory_info().rss for who in ("client", "scheduler")]
            self.memory.append((count, sizes[0], sizes[1]))
        if count % (10 * self.every) == 0:
            took_s = time.monotonic() - self.began
            print(f"{count} units, {count / took_s:.0f}/s", file=sys.stderr)


def suite(folder: Path, workloads: int) -> list[str]:
    """Write a suite of many workloads, and return their names."""
    names, modules = [], {}
    for begin in range(0, workloads, PER_FILE):
        numbers = range(begin, min(begin + PER_FILE, workloads))
        text = "from harness import Workload, spec\n"
        text += "".join(WORKLOAD.format(number=number) for number in numbers)
        modules[f"noop_{begin}"] = text
        names += [f"noop_{begin}.Noop{number}" for number in numbers]
    committed(folder, modules)
    return names


def cpu_s(processes: list[psutil.Process]) -> float:
    """Return how long processes have computed, all together."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def slope(memory: list[tuple[int, int, int]], column: int) -> float:
    """Return by how many bytes a process grew with each unit, after the first quarter."""
    rest = memory[len(memory) // 4 :]
    if len(rest) < 3:
        return float("nan")
    counts = np.array([row[0] for row in rest], dtype=float)
    return float(np.polyfit(counts, [row[column] for row in rest], 1)[0])


def measure(units: int, workers: int, workloads: int) -> None:
    """Send the units and print what became of them."""
    machines = [f"machine-{number}" for number in range(workers)]
    with (
        tempfile.TemporaryDirectory() as scratch,
        fleet(Path(scratch), machines, machines, "tests.performance.fleet_noop") as on,
    ):
        names = suite(on.project, workloads)
        on.start()
        on.wait(workers)
        os.chdir(on.project)
        chosen = discovery.discover(on.project / "benchmarks")
        context = local_context(on.folder / "results", on.project / "benchmarks")
        processes = -(-units // workloads)
        options = Options(
            sampling.effort(f"{processes}x1"), targets=("cpu",), seed=0, compute=False
        )
        store = on.folder / "store"
        pool = Counting(connect(on.address), on.address)
        begin = time.monotonic()
        pool.watch(
            processes * workloads,
            {
                "client": [psutil.Process()],
                "scheduler": [on.process("scheduler")],
                "workers": [on.process(name) for name in machines],
            },
        )
        try:
            sweep.sweep_on(
                pool, chosen.workloads, context, options, on_note=print, store=str(store)
            )
        except FleetError as error:
            print(f"ended early: {error}")
        took_s = time.monotonic() - pool.began
        spent = {who: cpu_s(them) - pool.spent[who] for who, them in pool.others.items()}
        pool.client.close()
        kept = sum(len(file.read_bytes().splitlines()) for file in record_files(store))
        print(f"{kept} records in the store")
    wanted = {(f"{name}@cpu", number) for name in names for number in range(processes)}
    count = sum(pool.back.values())
    print(f"{count} units over {workers} workers in {took_s:.1f} s: {count / took_s:.0f}/s", end="")
    print(f" (target: {TARGET_PER_S}/s); {pool.began - begin:.1f} s until the first was sent")
    print(
        f"lost {len(wanted - set(pool.back))} (target: 0), {len(pool.failed)} sent again, ", end=""
    )
    print(f"{sum(n > 1 for n in pool.back.values())} came back twice, ", end="")
    print(f"{len(set(pool.back) - wanted)} that nobody asked for")
    for who, column in (("client", 1), ("scheduler", 2)):
        first, last = pool.memory[len(pool.memory) // 4][column], pool.memory[-1][column]
        print(
            f"{who}: {first / 2**20:.1f} MiB after a quarter, {last / 2**20:.1f} MiB at the end, "
            f"{slope(pool.memory, column):+.0f} bytes per unit"
        )
    said = ", ".join(f"{who} {seconds / count * 1e3:.2f} ms" for who, seconds in spent.items())
    print(f"CPU per unit: {said}")


def main() -> None:
    """Measure from the command line."""
    given = command.options(__doc__, units=100_000, workers=8, workloads=1000)
    measure(given.units, given.workers, given.workloads)


if __name__ == "__main__":
    main()
