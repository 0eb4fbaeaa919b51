"""Which way should a program be shipped? From process start to first result, by every way.

Each replicate is a process of its own; the ways take turns in random order. A replicate whose
events contradict its way, or whose result differs from the plain one's, is no time at all.
"""

from __future__ import annotations

import pickle
import random
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from harness.declare.workload import Case, Workload, name_of
from harness.engine.child import ChildError, ask
from harness.errors import UsageError
from harness.records import environment
from harness.records.units import seconds_text
from harness.ship import cases
from harness.watch import evidence
from harness.watch.temporary import temporary_folder

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
    cache: Literal["", "cold", "warm"] = ""
    events: dict[str, int] = field(default_factory=dict)
    """What JAX must report of a declared case, no more and no less, for the way to be proven."""


ROUTES = (
    Route("jit", "jit", "", COLD),
    Route("jit + warm cache", "jit", "warm", {**COLD, "hit": 1}),
    Route("export", "export", "", COLD),
    Route("export + warm cache", "export", "warm", {**COLD, "hit": 1}),
    Route("serialized executable", "executable"),
)
"""The first is the plain one: its result is what the others must give."""


class Replicate(msgspec.Struct, frozen=True):
    """What one process took by one way."""

    steps_s: dict[str, float]
    refused: str = ""
    """Why the time does not count: events or a result that contradict the way."""
    compile_s: float | None = None
    """Of a program: seconds of compiling, or loading, all that it needs until its first step."""
    compiles: int = 0
    """Of a program: how many those are."""
    hits: int = 0
    """Of a program: how many of them the persistent cache had."""

    @property
    def total_s(self) -> float:
        """From process start to the first result."""
        return sum(self.steps_s.values())


class Row(msgspec.Struct):
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
        """Return the median over processes of the sum of some steps, or of all of them.

        None if nothing is proven.
        """
        sums = [
            sum(one.steps_s.get(step, 0.0) for step in steps or one.steps_s) for one in self.counted
        ]
        return statistics.median(sums) if sums else None


class RoutesReport(msgspec.Struct, frozen=True):
    """All ways of one case, or of a function of a program."""

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
    """Start one case by every way; see :meth:`RoutesInTurns.compare`.

    Raises:
        UsageError: the inputs of the case cannot be stored.
        ChildError: not even the plain way ends with a result.
    """
    return _Declared(announce, workload, case).compare(processes, seed)


@dataclass
class RoutesInTurns(ABC):
    """Takes ways in turns."""

    routes: ClassVar[Sequence[Route]]
    announce: Callable[[str], None]
    """Is told what is about to run."""
    folder: Path = field(init=False)
    """For what is shipped."""

    @abstractmethod
    def make(self) -> tuple[dict[str, int], dict[str, str]]:
        """Make what is shipped.

        Returns:
            Bytes by program, and reasons why others cannot be made.
        """

    @abstractmethod
    def start(self, route: Route) -> Replicate:
        """Start by a way, in a process of its own.

        Raises:
            ChildError: it ends badly.
        """

    @abstractmethod
    def names(self) -> tuple[str, str]:
        """Return what a report calls the program and its case."""

    def compare(self, processes: int, seed: int | None) -> RoutesReport:
        """Start by every way, `processes` times each, one process at a time.

        The ways take turns in an order that `seed` decides, drawn and reported if None.
        """
        seed = random.SystemRandom().randrange(2**31) if seed is None else seed
        with temporary_folder() as self.folder:
            rows = self._rows(processes, seed)
        return RoutesReport(*self.names(), processes, seed, environment.versions(), rows)

    def _rows(self, processes: int, seed: int) -> list[Row]:
        self.announce("building what is shipped")
        made, reasons = self.make()
        rows = [
            Row(route.name, made.get(route.program), [], reasons.get(route.program, ""))
            for route in self.routes
        ]
        ways = list(zip(self.routes, rows, strict=True))
        for route, row in ways:
            if row.shipped_bytes is not None and route.cache == "warm":
                self.announce(f"filling the cache of {route.name}")
                self._try(route, row)
                entries = self.cache(route).rglob("*-cache")
                row.shipped_bytes += sum(entry.stat().st_size for entry in entries)
        order = random.Random(seed)
        began = time.monotonic()
        for number in range(processes):
            left_s = (time.monotonic() - began) / number * (processes - number) if number else 0.0
            left = f", about {seconds_text(left_s)} left" if number else ""
            turns = [(route, row) for route, row in ways if not row.reason]
            order.shuffle(turns)
            for route, row in turns:
                self.announce(f"process {number + 1} of {processes}{left}: {route.name}")
                left = ""
                if replicate := self._try(route, row):
                    row.replicates.append(replicate)
        for row in rows:
            refused = sorted({one.refused for one in row.replicates if one.refused})
            row.reason = row.reason or "; ".join(refused)
        return rows

    def cache(self, route: Route) -> Path:
        """Return the directory of a way's cache."""
        return self.folder / f"cache-{route.program}-{route.cache}"

    def _try(self, route: Route, row: Row) -> Replicate | None:
        try:
            return self.start(route)
        except ChildError as error:
            row.reason = str(error)
            return None


@dataclass
class _Declared(RoutesInTurns):
    routes = ROUTES
    workload: type[Workload]
    case: Case

    def names(self) -> tuple[str, str]:
        return name_of(self.workload), self.case.label

    def make(self) -> tuple[dict[str, int], dict[str, str]]:
        self.job = {**cases.job(self.workload, [self.case]), "folder": str(self.folder)}
        built = self._ask("harness.ship.programs", None)
        if "reason" in built:
            raise UsageError(
                f"{name_of(self.workload)}: what is shipped takes arrays and numbers as inputs, "
                f"and {built['reason']}. Ship a function of the arrays alone."
            )
        self.job["call"], made = built["call"], built["made"]
        self._ask(START, ROUTES[0])
        self.expected = self._result()
        reasons = {name: one["reason"] for name, one in made.items() if "reason" in one}
        return {name: one["bytes"] for name, one in made.items() if "bytes" in one}, reasons

    def start(self, route: Route) -> Replicate:
        answer = self._ask(START, route)
        problem = evidence.contradiction(answer["events"], route.events)
        if problem and route.cache == "warm" and not answer["events"].get("hit"):
            problem = COLD_CACHE
        problem = problem or difference(self.expected, self._result())
        return Replicate(answer["steps_s"], problem or "")

    def _result(self) -> list[Any]:
        leaves: list[Any] = pickle.loads((self.folder / "result").read_bytes())
        return leaves

    def _ask(self, module: str, route: Route | None) -> dict[str, Any]:
        cache = self.cache(route) if route is not None and route.cache else None
        job = {**self.job, "program": route.program if route is not None else ""}
        variables = cases.variables(self.workload, self.case, cache)
        answer: dict[str, Any] = ask(module, job, variables, self.workload.timeout_s)
        return answer


COLD_CACHE = (
    "the warm cache did not answer: `harness cache explain` says why "
    "(up to jax 0.10.2 programs with host callbacks are never stored)"
)


RTOL = {"float16": 1e-2, "bfloat16": 3e-2, "float32": 1e-4, "complex64": 1e-4}
"""Relative tolerance of results by dtype; 1e-8 for wider floats, none for everything else."""


def difference(expected: list[Any], got: list[Any]) -> str | None:
    """Return how two results differ, leaf by leaf, or None where they agree within `RTOL`."""
    if len(expected) != len(got):
        return f"the result has {len(got)} leaves; the plain path's has {len(expected)}"
    for number, pair in enumerate(zip(expected, got, strict=True)):
        one, other = (leaf[0] if isinstance(leaf, tuple) else leaf for leaf in pair)
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return (
                f"leaf {number} of the result is {other.dtype}{other.shape}; the plain path's is "
                f"{one.dtype}{one.shape}"
            )
        if not _close(one, other):
            return f"leaf {number} of the result has other values than the plain path's"
    return None


def _close(first: Any, second: Any) -> bool:
    if first.dtype.kind in "biu":
        return bool(np.array_equal(first, second))
    wide = np.complex128 if first.dtype.kind == "c" else np.float64
    one, other = first.astype(wide), second.astype(wide)
    rtol = RTOL.get(first.dtype.name, 1e-8)
    finite = np.abs(one[np.isfinite(one)])
    atol = rtol * float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True))
