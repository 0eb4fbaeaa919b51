"""Which way should a program be shipped? From process start to first result, by every way.

Each replicate is a process of its own; the ways take turns in random order. A replicate whose
events contradict its way, or whose result differs from the plain one's, is no time at all.
"""

from __future__ import annotations

import pickle
import random
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.declare.workload import Case, Workload, name_of
from harness.engine.child import ChildError, ask
from harness.errors import UsageError
from harness.records import environment
from harness.ship import cases
from harness.ship.results import difference
from harness.watch.temporary import temporary_folder

BUILD = "harness.ship.build_child"
START = "harness.ship.route_child"

STEPS = ("process", "import", "backend", "program", "trace", "lower", "compile", "run")
"""From process start to the first result: the interpreter, `import jax`, `jax.devices()`, getting
the program (importing its source, or reading what was shipped), then JAX's stages, then the first
call. Left out of all: making the inputs, and what the harness imports for itself."""

COLD = {"trace": 1, "lower": 1, "compile": 1}


@dataclass(frozen=True)
class Route:
    """One way to start."""

    name: str
    program: str
    """What is shipped, of :data:`harness.ship.programs.PROGRAMS`."""
    cache: bool
    events: Mapping[str, int]
    """What JAX must report, no more and no less, for the way to be proven."""


ROUTES = (
    Route("jit", "jit", False, COLD),
    Route("jit + warm cache", "jit", True, {**COLD, "hit": 1}),
    Route("export", "export", False, COLD),
    Route("export + warm cache", "export", True, {**COLD, "hit": 1}),
    Route("serialized executable", "executable", False, {}),
)
"""The first is the plain one: its result is what the others must give."""


class Replicate(msgspec.Struct, frozen=True):
    """What one process took by one way."""

    steps_s: dict[str, float]
    refused: str = ""
    """Why the time does not count: events or a result that contradict the way."""

    @property
    def total_s(self) -> float:
        """From process start to the first result."""
        return sum(self.steps_s.values())


class Row(msgspec.Struct, frozen=True):
    """One way: what is shipped, and what each process took."""

    path: str
    shipped_bytes: int | None
    replicates: list[Replicate]
    reason: str = ""
    """Why it cannot be taken here, or was not proven."""

    @property
    def counted(self) -> list[Replicate]:
        """The replicates that are proven."""
        return [replicate for replicate in self.replicates if not replicate.refused]

    @property
    def status(self) -> str:
        """`ok`, `refused` (taken, not proven) or `n/a` (cannot be taken here)."""
        return "ok" if self.counted else "refused" if self.replicates else "n/a"

    def median_s(self, *steps: str) -> float | None:
        """Return the median over processes of the sum of some steps; None if nothing is proven."""
        sums = [sum(one.steps_s.get(step, 0.0) for step in steps) for one in self.counted]
        return statistics.median(sums) if sums else None


class RoutesReport(msgspec.Struct, frozen=True):
    """All ways of one case."""

    workload: str
    case: str
    processes: int
    seed: int
    versions: dict[str, str]
    rows: list[Row]


def compare(
    workload: type[Workload],
    case: Case,
    processes: int = 5,
    seed: int | None = None,
    announce: Callable[[str], None] = lambda text: None,
) -> RoutesReport:
    """Start one case by every way, `processes` times each, one process at a time.

    Args:
        workload: what is started.
        case: which case of it; on one device.
        processes: replicates per way.
        seed: of the order in which the ways take turns; drawn and reported if None.
        announce: told what is about to run.

    Raises:
        UsageError: the number of processes or the case makes no sense here.
        ChildError: not even the plain way ends with a result.
    """
    cases.check_processes(processes)
    if case.transform not in cases.ONE_DEVICE:
        raise UsageError(
            f"{case.id}: the paths are compared on one device; expected a transform among "
            f"{', '.join(cases.ONE_DEVICE)}."
        )
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    with temporary_folder() as name:
        rows = _Comparison(workload, case, Path(name), announce).run(processes, seed)
    return RoutesReport(
        name_of(workload), case.label, processes, seed, environment.versions(), rows
    )


class _Comparison:
    def __init__(
        self, workload: type[Workload], case: Case, folder: Path, announce: Callable[[str], None]
    ) -> None:
        self.workload = workload
        self.case = case
        self.folder = folder
        self.announce = announce
        self.job = {**cases.job(workload, [case]), "folder": str(folder)}
        self.expected: list[Any] = []
        self.shipped: dict[str, int] = {}
        self.reasons: dict[str, str] = {}
        self.replicates: dict[str, list[Replicate]] = {route.name: [] for route in ROUTES}

    def run(self, processes: int, seed: int) -> list[Row]:
        self._build()
        order = random.Random(seed)
        for number in range(processes):
            routes = [route for route in ROUTES if route.name not in self.reasons]
            order.shuffle(routes)
            for route in routes:
                self.announce(f"process {number + 1} of {processes}: {route.name}")
                self._take(route)
        return [self._row(route) for route in ROUTES]

    def _build(self) -> None:
        """Make what is shipped and the result to compare with, and warm both caches."""
        self.announce("building what is shipped")
        built = self._ask(BUILD, None)
        if "reason" in built:
            raise UsageError(
                f"{name_of(self.workload)}: what is shipped takes arrays and numbers as inputs, "
                f"and {built['reason']}. Ship a function of the arrays alone."
            )
        self.job["call"], made = built["call"], built["made"]
        for route in ROUTES:
            if "reason" in made[route.program]:
                self.reasons[route.name] = made[route.program]["reason"]
            else:
                self.shipped[route.name] = made[route.program]["bytes"]
        self._ask(START, ROUTES[0])
        self.expected = self._result()
        for route in ROUTES:
            if route.cache and route.name not in self.reasons:
                self.announce(f"filling the cache of {route.name}")
                self._try(route)
                entries = self._cache(route).rglob("*-cache")
                self.shipped[route.name] += sum(entry.stat().st_size for entry in entries)

    def _cache(self, route: Route) -> Path:
        return self.folder / f"cache-{route.program}"

    def _ask(self, module: str, route: Route | None) -> dict[str, Any]:
        cache = self._cache(route) if route is not None and route.cache else None
        job = {**self.job, "program": route.program if route is not None else ""}
        variables = cases.variables(self.workload, self.case, cache)
        answer: dict[str, Any] = ask(module, job, variables, self.workload.timeout_s)
        return answer

    def _try(self, route: Route) -> dict[str, Any] | None:
        try:
            return self._ask(START, route)
        except ChildError as error:
            self.reasons[route.name] = str(error)
            return None

    def _take(self, route: Route) -> None:
        answer = self._try(route)
        if answer is not None:
            problem = _contradiction(answer["events"], route.events)
            problem = problem or difference(self.expected, self._result())
            self.replicates[route.name].append(Replicate(answer["steps_s"], problem or ""))

    def _result(self) -> list[Any]:
        leaves: list[Any] = pickle.loads((self.folder / "result").read_bytes())
        return leaves

    def _row(self, route: Route) -> Row:
        replicates = self.replicates[route.name]
        refused = sorted({one.refused for one in replicates if one.refused})
        reason = self.reasons.get(route.name) or "; ".join(refused)
        return Row(route.name, self.shipped.get(route.name), replicates, reason)


def _contradiction(seen: Mapping[str, int], expected: Mapping[str, int]) -> str | None:
    if dict(seen) == dict(expected):
        return None
    if expected.get("hit") and not seen.get("hit"):
        return (
            "the warm cache did not answer: `harness cache explain` says why "
            "(up to jax 0.10.2 programs with host callbacks are never stored)"
        )
    return f"events show {dict(seen)}; the path needs {dict(expected)}"
