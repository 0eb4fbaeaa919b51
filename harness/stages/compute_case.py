"""A case whose program runs on one thread: built once, then visited among many other cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from harness.declare.workload import Case, Workload
from harness.program.facts import Facts, facts_of
from harness.program.text import fingerprint
from harness.records import kept
from harness.records.schema import StageSamples
from harness.stages import compute, injection, reference
from harness.stages.build import Build
from harness.stages.passes import Pass
from harness.stages.prepared import Prepared, prepare
from harness.stages.scenarios.registry import SCENARIOS
from harness.stages.staged_case import LOOPS
from harness.watch.evidence import Evidence


@dataclass
class ComputeCase:
    """A case of which `compute` is taken; nothing is made before the first visit."""

    who = ""
    comparison = None

    workload: type[Workload]
    case: Case
    proof: Evidence
    """Hears JAX's events."""
    _: KW_ONLY
    programs: str = ""
    """The folder in which the texts of the program are kept; empty for none."""
    extra_ns: Mapping[str, float] = field(default_factory=dict)
    """Extra work by stage; see `injection`."""
    turns: Mapping[str, int] = field(default_factory=dict)
    """The same in turns of its loop."""

    def __post_init__(self) -> None:
        self.prepared: Prepared | None = None
        self.samples = StageSamples()
        self.loop_ns: list[float] = []
        self.fingerprint = ""
        self.facts: Facts | None = None

    def visit(self, number: int, announce: Callable[[str], None]) -> float:
        """Call the program for about 20 ms; return the nanoseconds inside timed regions.

        Raises:
            WorkloadError: the case is declared wrongly.
            NotApplicable: it cannot be measured here, which is no fault.
        """
        if self.prepared is None:
            self.prepared = self._build(announce)
        self.loop_ns.append(float(min(reference.time_loop() for _ in range(LOOPS))))
        run = Pass(self.prepared, self.proof, SCENARIOS["off"], None, announce)
        run.build = self.build
        run.take(compute.STAGE)
        run.add_to(self.samples, "compute")
        self.samples.disturbed += run.share < compute.UNDISTURBED
        # Other cases need the memory, and new buffers may lie better for the processor's caches.
        self.prepared.forget_data()
        return run.timed_ns + LOOPS * self.loop_ns[-1]

    def _build(self, announce: Callable[[str], None]) -> Prepared:
        announce("inputs")
        prepared = prepare(self.workload, self.case)
        prepared.turns = dict(self.turns)
        self.build = build = Build.of(prepared)
        for name, step in build.steps():
            announce(name)
            step()
        self.fingerprint = fingerprint(build.compiled)
        self.facts = facts_of(build.traced, build.lowered, build.compiled)
        if self.programs:
            kept.keep(Path(self.programs), self.fingerprint, build.lowered, build.compiled)
        return prepared

    def stages(self) -> dict[str, StageSamples]:
        """Return the samples by stage."""
        return {"compute": self.samples}

    def fields(self) -> dict[str, Any]:
        """Return what else its record holds."""
        program = injection.fingerprint(self.fingerprint, self.extra_ns)
        return {"fingerprint": program, "facts": self.facts}
