"""Units that measure nothing, through a real scheduler: how many a second, and what they leave.

    python -m tools.performance.fleet_scale [--units 100000] [--workers 8] [--workloads 1000]

Drives the client of `harness run --on ... --store` itself, over a real scheduler and real workers,
each in a process of its own that says that it is a machine of its own. The suite is real too: each
of its workloads has `units / workloads` processes; every unit is an order of the plan's. All is
done that is done for a unit, but for starting a process that measures: its record is made up, of
about three kilobytes, and put into the store.

Printed are units per second, units that were lost or came back twice, records in the store, and
memory of the client and of the scheduler along the way: the slope over the last three quarters of
the units, in bytes per unit.
"""

import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import psutil

from harness.engine.context import Options, local_context
from harness.errors import FleetError
from harness.fleet import order as orders
from harness.fleet import sweep
from harness.fleet.pools import DaskPool, connect
from harness.fleet.workers import Seat
from harness.records.store import record_files
from harness.stages import sampling
from tools.performance import command
from tools.performance.fleet_processes import committed, fleet

TARGET_PER_S = 250
SAMPLES = 100
PER_FILE = 10

WORKLOAD = """

class Noop{number}(Workload):
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return x + {number}
"""


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
        count = self.back.total()
        if count % self.every == 0:
            sizes = [self.others[who][0].memory_info().rss for who in ("client", "scheduler")]
            self.memory.append((count, *sizes))
        if count % (10 * self.every) == 0:
            took_s = time.monotonic() - self.began
            print(f"{count} units, {count / took_s:.0f}/s", file=sys.stderr)


def suite(folder: Path, workloads: int) -> list[str]:
    """Write a suite of many workloads, and return their names."""
    names, modules = [], {}
    for number in range(workloads):
        module = f"noop_{number // PER_FILE}"
        text = modules.setdefault(module, "from harness import Workload, spec\n")
        modules[module] = text + WORKLOAD.format(number=number)
        names.append(f"{module}.Noop{number}")
    committed(folder, modules)
    return names


def cpu_s(processes: list[psutil.Process]) -> float:
    """Return how long processes have computed, all together."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def main() -> None:
    given = command.options(__doc__, units=100_000, workers=8, workloads=1000)
    machines = [f"machine-{number}" for number in range(given.workers)]
    with (
        tempfile.TemporaryDirectory() as scratch,
        fleet(Path(scratch), machines, machines, "tools.performance.fleet_noop") as on,
    ):
        names = suite(on.project, given.workloads)
        on.start()
        on.wait(given.workers)
        os.chdir(on.project)
        chosen = command.workloads(folder=on.project / "benchmarks")
        context = local_context(on.folder / "results", on.project / "benchmarks")
        processes = -(-given.units // given.workloads)
        effort = sampling.effort(f"{processes}x1")
        options = Options(effort, targets=("cpu",), seed=0, compute=False)
        store = on.folder / "store"
        pool = Counting(connect(on.address), on.address)
        begin = time.monotonic()
        others = {"client": [psutil.Process()], "scheduler": [on.process("scheduler")]}
        others["workers"] = [on.process(name) for name in machines]
        pool.watch(processes * given.workloads, others)
        try:
            sweep.sweep_on(pool, chosen, context, options, on_note=print, store=str(store))
        except FleetError as error:
            print(f"ended early: {error}")
        took_s = time.monotonic() - pool.began
        spent = {who: cpu_s(them) - pool.spent[who] for who, them in pool.others.items()}
        pool.client.close()
        kept = sum(len(file.read_bytes().splitlines()) for file in record_files(store))
    wanted = {(f"{name}@cpu", number) for name in names for number in range(processes)}
    back, count = set(pool.back), pool.back.total()
    print(
        f"{kept} records in the store\n"
        f"{count} units over {given.workers} workers in {took_s:.1f} s: {count / took_s:.0f}/s "
        f"(target: {TARGET_PER_S}/s); {pool.began - begin:.1f} s until the first was sent\n"
        f"lost {len(wanted - back)} (target: 0), {len(pool.failed)} sent again, "
        f"{sum(n > 1 for n in pool.back.values())} came back twice, "
        f"{len(back - wanted)} that nobody asked for"
    )
    rest = np.array(pool.memory[len(pool.memory) // 4 :], dtype=float)
    for column, who in enumerate(("client", "scheduler"), 1):
        first, last = rest[[0, -1], column] / 2**20
        slope = np.polyfit(rest[:, 0], rest[:, column], 1)[0] if len(rest) > 2 else np.nan
        print(
            f"{who}: {first:.1f} MiB after a quarter, {last:.1f} MiB at the end, "
            f"{slope:+.0f} bytes per unit"
        )
    said = ", ".join(f"{who} {seconds / count * 1e3:.2f} ms" for who, seconds in spent.items())
    print(f"CPU per unit: {said}")


if __name__ == "__main__":
    main()
