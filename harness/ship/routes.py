"""Which way should a program be shipped? From process start to first result, by every path.

Each replicate is a process of its own; the paths take turns in random order. A replicate whose
events contradict its path, or whose result differs from the plain path's, is no time at all.
"""

from __future__ import annotations

import pickle
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.declare import location
from harness.declare.workload import Case, Workload, name_of
from harness.errors import UsageError
from harness.records import environment
from harness.ship import cases as subjects
from harness.ship import children
from harness.ship.children import ChildError
from harness.ship.results import difference

if TYPE_CHECKING:
    import pandas as pd

CHILD = "harness.ship.route_child"
BUILDER = "harness.ship.build_child"

STEPS = ("process", "import", "backend", "program", "trace", "lower", "compile", "run")
"""From process start to the first result: the interpreter, `import jax`, `jax.devices()`, getting
the program (importing its source, or reading what was shipped), then JAX's stages, then the first
call. Left out of all: making the inputs, and what the harness imports for itself."""

_COLD = {"trace": 1, "lower": 1, "compile": 1}


@dataclass(frozen=True)
class Route:
    """One way to start."""

    name: str
    program: str
    """Where the program comes from: `jit`, `export` or `executable`."""
    cache: bool
    events: Mapping[str, int]
    """What JAX must report, no more and no less, for the path to be proven."""


PATHS = (
    Route("jit", "jit", False, _COLD),
    Route("jit + warm cache", "jit", True, {**_COLD, "hit": 1}),
    Route("export", "export", False, _COLD),
    Route("export + warm cache", "export", True, {**_COLD, "hit": 1}),
    Route("serialized executable", "executable", False, {}),
)


class Replicate(msgspec.Struct, frozen=True):
    """What one process took by one path."""

    steps_s: dict[str, float]
    refused: str = ""
    """Why the time does not count: events or a result that contradict the path."""

    @property
    def total_s(self) -> float:
        """From process start to the first result."""
        return sum(self.steps_s.values())


class Row(msgspec.Struct, frozen=True):
    """One path: what is shipped, and what each process took."""

    path: str
    shipped_bytes: int | None
    replicates: list[Replicate]
    reason: str = ""
    """Why the path cannot be taken here, or was not proven."""

    @property
    def counted(self) -> list[Replicate]:
        """The replicates that are proven."""
        return [replicate for replicate in self.replicates if not replicate.refused]

    @property
    def median_s(self) -> float | None:
        """The median time to the first result; None where nothing is proven."""
        counted = self.counted
        return statistics.median(r.total_s for r in counted) if counted else None

    @property
    def status(self) -> str:
        """`ok`, `refused` (taken, not proven) or `n/a` (cannot be taken here)."""
        return "ok" if self.counted else "refused" if self.replicates else "n/a"


class Report(msgspec.Struct, frozen=True):
    """All paths of one case."""

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
) -> Report:
    """Start one case by every path, `processes` times each, one process at a time.

    Args:
        workload: what is started.
        case: which case of it; on one device.
        processes: replicates per path.
        seed: of the order in which paths take turns; drawn and reported if None.
        announce: told what is about to run.

    Raises:
        UsageError: the number of processes or the case makes no sense here.
        ChildError: not even the plain path ends with a result.
    """
    subjects.check_processes(processes)
    if case.transform not in subjects.ONE_DEVICE:
        raise UsageError(
            f"{case.id}: the paths are compared on one device; expected a transform among "
            f"{', '.join(subjects.ONE_DEVICE)}."
        )
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    with tempfile.TemporaryDirectory(prefix="harness-ship-") as name:
        rows = _Comparison(workload, case, Path(name), announce).run(processes, seed)
    return Report(name_of(workload), case.label, processes, seed, environment.versions(), rows)


class _Comparison:
    def __init__(
        self, workload: type[Workload], case: Case, folder: Path, announce: Callable[[str], None]
    ) -> None:
        self.workload = workload
        self.case = case
        self.folder = folder
        self.announce = announce
        self.job = {
            "source": msgspec.to_builtins(location.locate(workload)),
            "case": subjects.position_of(workload, case),
            **{name: str(folder / name) for name in ("data", "export", "executable", "result")},
        }
        self.expected: list[Any] | None = None
        self.shipped: dict[str, int] = {}
        self.reasons: dict[str, str] = {}
        self.replicates: dict[str, list[Replicate]] = {path.name: [] for path in PATHS}

    def run(self, processes: int, seed: int) -> list[Row]:
        self._build()
        order = random.Random(seed)
        for number in range(processes):
            paths = [path for path in PATHS if path.name not in self.reasons]
            order.shuffle(paths)
            for path in paths:
                self.announce(f"process {number + 1} of {processes}: {path.name}")
                self._take(path)
        return [self._row(path) for path in PATHS]

    def _build(self) -> None:
        """Make the export and the executable, the result to compare with, and warm both caches."""
        self.announce("building what is shipped")
        built = children.ask(
            BUILDER, self.job, self.folder, self._variables(None), self.workload.timeout_s
        )
        for path in PATHS:
            made = built.get(path.program, {"bytes": 0})
            if "reason" in made:
                self.reasons[path.name] = made["reason"]
            else:
                self.shipped[path.name] = made["bytes"]
        self._ask(PATHS[0])
        self.expected = self._result()
        for path in PATHS:
            if path.cache and path.name not in self.reasons:
                self.announce(f"filling the cache of {path.name}")
                self._try(path)
                entries = self._cache(path).rglob("*-cache")
                self.shipped[path.name] += sum(entry.stat().st_size for entry in entries)

    def _cache(self, path: Route) -> Path:
        return self.folder / f"cache-{path.program}"

    def _variables(self, path: Route | None) -> dict[str, str]:
        cache = self._cache(path) if path is not None and path.cache else None
        return children.environment(self.workload, self.case, cache)

    def _ask(self, path: Route) -> dict[str, Any]:
        job = {**self.job, "program": path.program}
        return children.ask(CHILD, job, self.folder, self._variables(path), self.workload.timeout_s)

    def _try(self, path: Route) -> dict[str, Any] | None:
        try:
            return self._ask(path)
        except ChildError as error:
            self.reasons[path.name] = str(error)
            return None

    def _take(self, path: Route) -> None:
        answer = self._try(path)
        if answer is None:
            return
        problem = _contradiction(answer["events"], path.events) or difference(
            self.expected or [], self._result()
        )
        self.replicates[path.name].append(Replicate(answer["steps_s"], problem or ""))

    def _result(self) -> list[Any]:
        found: list[Any] = pickle.loads(Path(self.job["result"]).read_bytes())
        return found

    def _row(self, path: Route) -> Row:
        replicates = self.replicates[path.name]
        reason = self.reasons.get(path.name, "") or "; ".join(
            sorted({r.refused for r in replicates if r.refused})
        )
        return Row(path.name, self.shipped.get(path.name), replicates, reason)


def _contradiction(seen: Mapping[str, int], expected: Mapping[str, int]) -> str | None:
    if dict(seen) == dict(expected):
        return None
    if expected.get("hit") and not seen.get("hit"):
        return (
            "the warm cache did not answer: `harness cache explain` says why "
            "(up to jax 0.10.2 programs with host callbacks are never stored)"
        )
    return f"events show {dict(seen)}; the path needs {dict(expected)}"


def median_step_s(row: Row, *steps: str) -> float | None:
    """Return the median over processes of the sum of some steps; None where nothing is proven."""
    if not row.counted:
        return None
    return statistics.median(sum(r.steps_s.get(step, 0.0) for step in steps) for r in row.counted)


def frame(report: Report) -> pd.DataFrame:
    """Return a row per path and process: `total_s`, a column per step, bytes, status, reason."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for row in report.rows:
        base: dict[str, Any] = {"workload": report.workload, "case": report.case, "path": row.path}
        base["shipped_bytes"] = row.shipped_bytes
        if not row.replicates:
            rows.append({**base, "status": "n/a", "reason": row.reason})
        for number, replicate in enumerate(row.replicates):
            status = "refused" if replicate.refused else "ok"
            steps = {f"{step}_s": replicate.steps_s.get(step, 0.0) for step in STEPS}
            rows.append(
                {
                    **base,
                    "process": number,
                    "total_s": replicate.total_s,
                    **steps,
                    "status": status,
                    "reason": replicate.refused,
                }
            )
    return pd.DataFrame(rows)
