"""One case in a measuring process: the passes over it, or its first call, and what they found."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from harness.jaxhooks.evidence import Evidence
from harness.program.facts import Facts, facts_of, read
from harness.program.text import fingerprint
from harness.records import kept
from harness.records.distribution import Distribution
from harness.records.schema import StageSamples
from harness.stages import artefact, compute, injection, reference
from harness.stages.build import Build, count_calls
from harness.stages.passes import OTHER_PROGRAM, Pass, take_pass
from harness.stages.prepared import Prepared, inputs_digest, prepare
from harness.stages.registry import STAGES, names
from harness.stages.scenarios.cache_state import switched_off
from harness.stages.scenarios.registry import SCENARIOS
from harness.stages.stage import CALLS, Step
from harness.targets.topologies import Topology
from harness.workload.workload import Case, Workload


@dataclass
class StagedCase:
    """A case whose stages are taken by XLA in a scenario: it is built pass by pass, then called.

    Nothing is made before the first pass. What the last one built stays until it has been called.
    """

    in_parts, who, comparison = True, "", None

    workload: type[Workload]
    case: Case
    proof: Evidence
    """Hears JAX's events."""
    _: KW_ONLY
    scenario: str = "off"
    folder: str = ""
    """The directory of the persistent cache; empty where there is none."""
    wanted: int = 1
    """How many passes are made over it."""
    topology: Topology | None = None
    """What the case is compiled for without being run."""
    expected: str = ""
    """The fingerprint of the program that the cache must answer with, if known."""
    programs: str = ""
    """The folder in which the texts of the program are kept; empty for none."""
    extra_ns: Mapping[str, float] = field(default_factory=dict)
    """Extra work by stage; see `injection`."""
    turns: Mapping[str, int] = field(default_factory=dict)
    """The same in turns of its loop."""
    is_reference: bool = False
    """Also time the plain loop, and keep the persistent cache out."""

    def __post_init__(self) -> None:
        self.state = SCENARIOS[self.scenario]
        self.prepared: Prepared | None = None
        self.samples = {stage: StageSamples() for stage in names(*self.steps)}
        self.calls_ns: dict[str, array[float]] = {}
        """Each call of all passes, by stage."""
        self.loop_ns: list[float] = []
        self.passes = 0
        self.built: Pass | None = None
        self.fingerprint = ""
        self.facts: Facts | None = None
        self.entry_bytes = 0

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps whose stages are taken."""
        if self.is_reference:  # it is not called: nothing is divided by what its calls take
            return tuple(step for step in self.state.steps if step not in CALLS)
        return self.state.steps

    def visit(self, number: int, announce: Callable[[str], None]) -> None:
        """Build the case in pass `number`."""
        self.built = None
        if self.prepared is None:
            announce("inputs")
            self.prepared = prepare(self.workload, self.case, self.topology)
            self.prepared.turns = dict(self.turns)
        if self.is_reference:
            self.loop_ns.append(reference.loop_ns())
        with switched_off() if self.is_reference else nullcontext():
            count = len(sys.modules)
            taken = self._take(number, announce)
            if len(sys.modules) != count:  # linear algebra's first lowering imports much of SciPy
                taken.build.forget()
                taken = self._take(max(number, 1), announce)
        self._keep(taken)
        self.passes += 1
        is_called = self.topology is None and set(CALLS) & set(self.steps)
        if is_called and taken.build.compiled is not None:
            taken.build.keep_program()
            self.built = taken
        else:
            taken.build.forget()

    def make_ready(self, announce: Callable[[str], None]) -> None:
        """Have the program ready to be called, as the last pass has built it."""
        assert self.built is not None
        self.built.announce = announce
        self.built.make_ready()

    def warm(self, seconds: float, announce: Callable[[str], None]) -> None:
        """Call it for so long, off the clock."""
        assert self.built is not None
        announce("execute")
        self.built.warm(seconds)

    def call(self, step: Step, announce: Callable[[str], None]) -> None:
        """Take a round of the stages of a step in which it is called."""
        run = self.built
        assert run is not None
        run.begin()
        run.announce = announce
        for stage in names(step):
            run.take(STAGES[stage])
            run.add_to(self.samples[stage], stage)
            self.calls_ns.setdefault(stage, array("d")).extend(run.calls_ns.get(stage, ()))
        if step == "compute":
            self.samples["compute"].disturbed += run.share < compute.UNDISTURBED
        run.rest()

    def inputs(self, announce: Callable[[str], None]) -> str | None:
        """Return a digest of the values that the program gets; None where nothing runs."""
        if self.facts is None or self.prepared is None or self.topology is not None:
            return None
        announce("inputs")
        return inputs_digest(self.prepared, self.facts)

    def count(self, announce: Callable[[str], None]) -> Facts | None:
        """Return the facts with Python's calls, from a pass of its own; None if there are none.

        Not the first pass in the process: that also fills caches which JAX keeps.
        """
        if self.facts is None or self.prepared is None:
            return None
        with switched_off():
            counted = count_calls(self.prepared, announce)
        for fact, number in read("calls", counted).items():
            setattr(self.facts, fact, number)
        return self.facts if counted else None

    def _take(self, number: int, announce: Callable[[str], None]) -> Pass:
        assert self.prepared is not None
        return take_pass(
            self.prepared,
            self.proof,
            self.scenario,
            Path(self.folder) if self.folder else None,
            number=number,
            announce=announce,
            passes=self.wanted,
            steps=tuple(s for s in self.steps if self.topology is not None or s not in CALLS),
            failed=self._keep,
        )

    def _keep(self, taken: Pass) -> None:
        if taken.build.compiled is not None:
            self._look_at_program(taken)
        self._add(taken)

    def _look_at_program(self, taken: Pass) -> None:
        build = taken.build
        from_cache = self.state.directory == "filled"
        if from_cache or not self.fingerprint:
            self.fingerprint = fingerprint(build.compiled)
        if self.expected and self.fingerprint != self.expected:
            taken.refuse("load", OTHER_PROGRAM)
        if self.passes or from_cache or self.is_reference:
            return
        assert self.prepared is not None
        self.prepared.check_static(build.lowered)
        self.facts = facts_of(build.traced, build.lowered, build.compiled)
        if self.programs:
            kept.keep(Path(self.programs), self.fingerprint, build.lowered, build.compiled)

    def _add(self, taken: Pass) -> None:
        self.entry_bytes = max(self.entry_bytes, taken.entry_bytes)
        for stage, samples in self.samples.items():
            taken.add_to(samples, stage)

    def stages(self) -> dict[str, StageSamples]:
        """Return the samples by stage; a stage that has none says why, where that is no fault."""
        for stage, samples in self.samples.items():
            if not samples.samples_ns and not samples.refused:
                samples.reason = samples.reason or self.state.missing.get(stage, "")
        for stage, calls_ns in self.calls_ns.items():
            self.samples[stage].calls = Distribution.of(calls_ns) if calls_ns else None
        loop = {"loop": StageSamples(list(self.loop_ns))} if self.is_reference else {}
        return {**self.samples, **loop}

    def fields(self) -> dict[str, Any]:
        """Return what else its record holds."""
        return {
            "fingerprint": injection.fingerprint(self.fingerprint, self.extra_ns),
            "facts": self.facts,
            "entry_bytes": self.entry_bytes,
        }


@dataclass
class FirstCallCase(StagedCase):
    """A case that a process calls for the first time, and does nothing else: what a user feels."""

    spawned_ns: int = field(kw_only=True)
    """When the process was started, by the monotonic clock."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is taken in the one visit."""
        return "first_call", "start"

    def visit(self, number: int, announce: Callable[[str], None]) -> None:
        """Take the first call."""
        announce("inputs")
        prepared = prepare(self.workload, self.case, traces=False)
        folder = Path(self.folder) if self.folder else None
        run = Pass(prepared, self.proof, self.state, folder, announce, spawned_ns=self.spawned_ns)
        for name in self.samples:
            run.take(STAGES[name])
        if not run.build.refused:
            announce("program")
            for _, step in run.build.steps():
                step()  # JAX has it in memory: this is the program that ran
            self.fingerprint = fingerprint(run.build.compiled)
            other = OTHER_PROGRAM if self.expected not in ("", self.fingerprint) else ""
            reason = other or run.differs()
            for name in self.samples if reason else ():
                run.refuse(name, reason)
        self._add(run)
        run.build.forget()
        self.loop_ns.append(reference.loop_ns())


@dataclass
class ArtefactCase(StagedCase):
    """A case of which an artefact is made, for other processes; nothing is timed."""

    def visit(self, number: int, announce: Callable[[str], None]) -> None:
        """Make it, or note why there is none."""
        announce("inputs")
        prepared = prepare(self.workload, self.case)
        announce("program")
        assert self.state.artefact is not None
        build, file = Build.of(prepared), artefact.path(Path(self.folder), self.case.id)
        artefact.make(build, self.state.artefact, file)
        if build.compiled is not None and "build" not in self.steps:  # the very program is loaded
            self.fingerprint = fingerprint(build.compiled)
