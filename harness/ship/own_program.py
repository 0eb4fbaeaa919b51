"""Which way should a program of one's own be shipped? Its first step, from process start, by each.

The program runs as it is, in fresh processes; :mod:`harness.watch.first_step` sees the first call
of one function that it has jitted, and answers that by what was shipped. All else that the program
compiles until then is compiled, or loaded from the cache, as ever.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from harness.cache import advice
from harness.engine.child import ChildError
from harness.errors import ExitCode, HarnessError, match_names
from harness.ship.routes import (
    COLD_CACHE,
    Replicate,
    Route,
    RoutesInTurns,
    RoutesReport,
    difference,
)
from harness.watch.first_step import RESULTS, STEPS, VARIABLE, FirstStep, StepJob

ROUTES = (
    Route("jit", "jit"),
    Route("jit + cold cache", "jit", "cold"),
    Route("jit + warm cache", "jit", "warm"),
    Route("export", "export"),
    Route("export + warm cache", "export", "warm"),
    Route("serialized executable", "executable"),
    Route("serialized executable + warm cache", "executable", "warm"),
)
"""The first is the plain one."""

LAPACK = ". If it calls LAPACK (solve, cholesky): lower something that does before it is loaded"


class NoFirstStep(HarnessError):
    """A program calls nothing that could be shipped."""

    exit_code = ExitCode.NOTHING


def compare(
    command: Sequence[str],
    function: str = "",
    processes: int = 5,
    seed: int | None = None,
    announce: Callable[[str], None] = lambda text: None,
) -> RoutesReport:
    """Run a program by every way; see :meth:`harness.ship.routes.RoutesInTurns.compare`.

    The first step is the first call of `function`, a name or an expression; without it, of the one
    whose first call takes longest.
    """
    return _OwnProgram(announce, command, function).compare(processes, seed)


@dataclass
class _OwnProgram(RoutesInTurns):
    routes = ROUTES
    command: Sequence[str]
    function: str

    def names(self) -> tuple[str, str]:
        return self.function, f"of {' '.join(self.command[1:])}"

    def make(self) -> tuple[dict[str, int], dict[str, str]]:
        steps = self._run(StepJob(str(self.folder)), ROUTES[0])[1]
        known = {one.name: one for one in reversed(steps)}
        if not known:
            raise NoFirstStep(
                "The program calls no function that `jax.jit` made, but in a trace or compiled by "
                "itself; or it runs a Python that cannot be followed. So there is no step to time: "
                "`harness cache advise` times whole runs."
            )
        wanted = list(known.values())
        if self.function:
            names = match_names(self.function, list(known), "function that the program has jitted")
            wanted = [known[name] for name in names]
        self.function = max(wanted, key=lambda one: one.call_s).name
        _, step = self._first(StepJob(str(self.folder), self.function, makes=True), ROUTES[0])
        return {"jit": 0, **step.made}, step.reasons

    def start(self, route: Route) -> Replicate:
        if route.cache == "cold":
            shutil.rmtree(self.cache(route), ignore_errors=True)
        job = StepJob(str(self.folder), self.function, route.program)
        try:
            began_ns, step = self._first(job, route)
        except ChildError as error:
            crashed = route.program == "executable" and "SIGSEGV" in str(error)
            raise ChildError(f"{error}{LAPACK * crashed}") from None
        before_s = (step.entered_ns - began_ns) / 1e9
        compiles, hits = (
            step.before.get(kind, 0) + step.within.get(kind, 0) for kind in ("compile", "hit")
        )
        return Replicate(
            {"before": before_s, "step": step.call_s},
            self._refused(route, step, hits),
            step.compile_s,
            compiles,
            hits,
        )

    def _refused(self, route: Route, step: FirstStep, hits: int) -> str:
        """Return why a replicate is none of its way, or nothing."""
        if reason := step.reasons.get(route.program):
            return reason
        if route.cache == "warm" and not hits:
            return COLD_CACHE
        if route.program == "jit":
            return ""
        if route.program == "executable" and step.within.get("compile"):
            return f"{step.name} was compiled all the same"
        own, shipped = pickle.loads((self.folder / RESULTS).read_bytes())
        problem = difference(own, shipped)
        return f"{problem}: what it closes over is fixed when it is shipped" if problem else ""

    def _first(self, job: StepJob, route: Route) -> tuple[int, FirstStep]:
        began_ns, steps = self._run(job, route)
        if steps:
            return began_ns, steps[0]
        raise NoFirstStep(f"{route.name}: the program did not call {self.function} this time.")

    def _run(self, job: StepJob, route: Route) -> tuple[int, list[FirstStep]]:
        """Run the program; return when it was started, and the first steps that were seen."""
        noted, order = self.folder / STEPS, self.folder / "job.json"
        for file in (noted, self.folder / RESULTS):
            file.unlink(missing_ok=True)
        order.write_text(json.dumps(asdict(job)))
        setting = advice.EVERY if route.cache else advice.NONE
        cache = self.cache(route)
        began_ns = advice.run(self.command, setting, cache, **{VARIABLE: str(order)})
        lines = noted.read_text().splitlines() if noted.exists() else []
        steps = [FirstStep(**json.loads(line)) for line in lines]
        advice.check_directories({step.directory for step in steps}, cache)
        return began_ns, steps
