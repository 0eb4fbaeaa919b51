"""A case that a process calls for the first time, and does nothing else: what a user feels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from harness.declare.workload import Case, Workload
from harness.program.text import fingerprint
from harness.records.schema import StageSamples
from harness.stages import reference
from harness.stages.passes import OTHER_PROGRAM, Pass
from harness.stages.prepared import prepare
from harness.stages.registry import ALONE_STAGES, STAGES
from harness.stages.scenarios.registry import SCENARIOS
from harness.watch.evidence import Evidence


@dataclass
class FirstCallCase:
    """A case whose first call is taken, in a scenario; nothing is made before the visit."""

    who = ""
    comparison = None

    workload: type[Workload]
    case: Case
    proof: Evidence
    """Hears JAX's events, from before anything of the user's was imported."""
    _: KW_ONLY
    spawned_ns: int
    """When the process was started, by the monotonic clock."""
    scenario: str = "off"
    folder: str = ""
    """The directory of the persistent cache; empty where there is none."""
    expected: str = ""
    """The fingerprint of the program that the cache must answer with, if known."""

    def __post_init__(self) -> None:
        self.loop_ns = 0.0
        self.fingerprint = ""
        self.entry_bytes = 0
        self.samples: dict[str, StageSamples] = {}

    def visit(self, number: int, announce: Callable[[str], None]) -> float:
        """Take the first call; return the nanoseconds inside timed regions."""
        announce("inputs")
        prepared = prepare(self.workload, self.case, traces=False)
        folder = Path(self.folder) if self.folder else None
        state = SCENARIOS[self.scenario]
        run = Pass(prepared, self.proof, state, folder, announce, spawned_ns=self.spawned_ns)
        for name in ALONE_STAGES:
            run.take(STAGES[name])
        announce("program")
        for _, step in run.build.steps():
            step()  # JAX has it in memory: this is the program that ran
        self.fingerprint = fingerprint(run.build.compiled)
        for name in ALONE_STAGES:
            if self.expected and self.fingerprint != self.expected:
                run.refuse(name, OTHER_PROGRAM)
            run.add_to(self.samples.setdefault(name, StageSamples()), name)
        self.entry_bytes = run.entry_bytes
        self.loop_ns = reference.loop_ns()
        return run.timed_ns + reference.LOOPS * self.loop_ns

    def stages(self) -> dict[str, StageSamples]:
        """Return the samples by stage."""
        return self.samples

    def fields(self) -> dict[str, Any]:
        """Return what else its record holds."""
        return {"fingerprint": self.fingerprint, "entry_bytes": self.entry_bytes}
