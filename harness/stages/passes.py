"""One pass over a case: its stages taken in order, each timed, and proven by JAX's own events."""

from __future__ import annotations

import dataclasses
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import jax

from harness.jaxhooks import evidence
from harness.jaxhooks.temporary import temporary_folder
from harness.program.collector import gc_off
from harness.records.schema import StageSamples
from harness.stages import artefact, injection
from harness.stages.blocks import EXECUTE_S, Calls, Grouping, Timed, group, time_blocks
from harness.stages.build import Build, LoadedBuild
from harness.stages.compute import ROUND_S, NotComputed, inline_calls
from harness.stages.prepared import (
    Prepared,
    called,
    cpu_devices,
    is_there,
    nbytes,
    prepare,
    supply,
    wrap,
)
from harness.stages.registry import STAGES, names
from harness.stages.scenarios import cache_state
from harness.stages.scenarios.registry import SCENARIOS
from harness.stages.scenarios.scenario import Scenario
from harness.stages.stage import CALLS, Stage, Step

with suppress(ImportError):  # Windows has none, and only reads
    import resource

OTHER_PROGRAM = "the cache answered with another program than was put into it"
NO_TRACE = "{} has no trace step of its own; its lower stage traces as well"
GIVEN_BACK = "JAX gave back the jaxpr of the last pass: nothing was traced"
SEEN = "this process had traced a function named {} before: that may be no first call"

_clock = time.perf_counter_ns


def take_pass(
    prepared: Prepared,
    proof: evidence.Evidence,
    scenario: str = "off",
    folder: Path | None = None,
    *,
    number: int = 0,
    announce: Callable[[str], None] = lambda stage: None,
    effort_s: float = EXECUTE_S,
    passes: int = 1,
    steps: Sequence[Step] = (),
    failed: Callable[[Pass], None] = lambda taken: None,
) -> Pass:
    """Take every stage of some steps once, from nothing in memory.

    Where the scenario begins with an empty directory, the first pass fills `folder`; later passes
    have empty directories of their own. What is prepared for a topology is compiled and not run.

    Args:
        prepared: the case.
        proof: hears JAX's events.
        scenario: one of :data:`harness.stages.scenarios.registry.SCENARIOS`.
        folder: the directory of the persistent cache; None where the scenario has none.
        number: of the pass in its process, from 0.
        announce: called with the name of each stage before it begins, outside the clock.
        effort_s: how long the program is run for, in seconds, in all passes together.
        passes: how many there are.
        steps: those whose stages are taken; without any, those of the scenario.
        failed: called with what was taken before a stage raised.
    """
    state = SCENARIOS[scenario]
    with ExitStack() as stack:
        own = folder
        if folder is not None and state.directory == "empty" and number:
            own = Path(stack.enter_context(temporary_folder()))
        if own is not None and state.artefact is None:
            cache_state.use(own)
        jax.clear_caches()
        run = Pass(prepared, proof, state, own, announce, effort_s, passes)
        try:
            for name in names(*(steps or state.steps)):
                run.take(STAGES[name])
        except (Exception, SystemExit):  # a user's function may raise anything
            failed(run)
            raise
        if folder is not None and run.folder != folder:
            cache_state.use(folder)  # not a directory that is gone in a moment
    return run


@dataclasses.dataclass
class Pass:
    """What one pass gave: nanoseconds by stage, or why a sample was refused."""

    prepared: Prepared
    proof: evidence.Evidence
    scenario: Scenario
    folder: Path | None
    """The directory that the persistent cache has now, or that an artefact is in."""
    announce: Callable[[str], None]
    effort_s: float = EXECUTE_S
    """For which the program is run, in all passes together."""
    passes: int = 1
    spawned_ns: int = 0
    """When the process was started, by the monotonic clock."""

    def __post_init__(self) -> None:
        self.build = Build.of(self.prepared)
        if self.scenario.artefact:
            assert self.folder is not None
            self.build = LoadedBuild(self.prepared, self.scenario, self.folder)
        self.called_ns = 0
        """When the first call had its result, by the monotonic clock."""
        self.entry_bytes = 0
        """What the persistent cache wrote for the program."""
        self._program = ""
        """The name of the program, as JAX's events tell it."""
        self._programs_ns = 0.0
        self._cpu_ns: Sequence[float] = ()
        """Of what was clocked last, until its samples are kept or refused."""
        self._calls: dict[bool, tuple[Calls, Grouping]] = {}
        """As users call it, and computed inline."""
        self._call_problem = ""
        self.begin()

    def begin(self) -> None:
        """Forget the samples that were taken so far; what was built stays."""
        self.samples_ns: dict[str, Sequence[float]] = {}
        self.calls_ns: dict[str, Sequence[float]] = {}
        """Each call of a stage that was timed by itself."""
        self.number: dict[str, int] = {}
        """Calls in a sample, where several are averaged."""
        self.programs: dict[str, tuple[int, float]] = {}
        """Programs that were built inside of a stage, and the nanoseconds that they took."""
        self.collected_ns: dict[str, float] = {}
        """What of a stage Python's garbage collector took, where it was on."""
        self.cpu_ns: dict[str, Sequence[float]] = {}
        """CPU time of the process for each sample."""
        self.share = 1.0
        """CPU time over wall time of the calls that were timed last."""
        self.refused: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        """Why there is no sample of a stage, where that is no fault; or what else to know of it."""
        self.unable: dict[str, str] = {}
        """The same as a code."""

    def take(self, stage: Stage) -> None:
        """Take a stage; what cannot be run here, or runs another program, has a reason instead."""
        assert stage.take is not None
        if self.build.refused:
            self.refuse(stage.name, self.build.refused)
            return
        topology = self.prepared.topology
        if stage.step in CALLS and topology is not None:
            self.missing[stage.name] = topology.not_run
            return
        if stage.step == "run":
            self.make_ready()
            if self._call_problem:
                self.refuse(stage.name, self._call_problem)
                return
        stage.take(self)

    @property
    def call(self) -> Callable[..., Any]:
        """What users call: the jitted function.

        Only pmap's own call would compile a second time (jax 0.10 to 0.12), so there it is the
        compiled program.
        """
        if self.prepared.is_pmap:
            return self.build.compiled  # type: ignore[no-any-return]
        return called(self.prepared, self.build.jitted)

    # The stages

    def trace(self) -> None:
        """Trace; a jaxpr that the last pass got as well was not traced (no event tells)."""
        if not self.build.has_trace:
            own = self.prepared.own
            what = "jax.pmap" if own is None else f"the function, a {type(own.function).__name__},"
            self.missing["trace"] = NO_TRACE.format(what)
            return
        self.timed("trace", self.build.trace, STAGES["trace"].events)
        if self.prepared.was_given(self.build.traced.jaxpr):
            self.refuse("trace", GIVEN_BACK)

    def lower(self) -> None:
        """Lower; what has no trace step of its own is traced in it."""
        traced = {} if self.build.has_trace else {"trace": 1}
        self.timed("lower", self.build.lower, {**traced, **STAGES["lower"].events})

    def first_call(self) -> None:
        """Call the function as a user's program does, which has never seen it; the collector is on.

        It has just run: whether all that the imports left is gone through once more in the middle
        of a short call would depend on how many objects were made before, by whomever.
        """
        proof = self.proof
        before, count = {name for _, name in proof.traced}, len(proof.traced)
        began_ns = time.monotonic_ns()
        gc.collect()
        self.spawned_ns += time.monotonic_ns() - began_ns  # a program that starts does not
        spent_ns, seen = self.clocked("first_call", self._call_once(), collector=True)
        builds = "build" in self.scenario.steps
        traced = STAGES["first_call"].events if builds else {}
        answers = self.scenario.outcomes or (("compile", {"compile": 1}),)
        outcomes = [("first_call", {**traced, **events}) for _, events in answers]
        if builds and any(evidence.programs_within(seen, events) for _, events in outcomes):
            self.keep("first_call", [spent_ns])  # programs were built inside of it
        else:
            self.judge(outcomes, [spent_ns], seen)
        # What is traced inside of a function takes less than the function.
        _, name = max(proof.traced[count:], default=(0.0, ""))
        if name in before and self.scenario.artefact is None:
            self.refuse("first_call", SEEN.format(name))

    def start(self) -> None:
        """Read when the first call had its result: one span of time, with the same proof."""
        if "first_call" in self.refused:
            self.refuse("start", self.refused["first_call"])
        else:
            self.keep("start", [self.called_ns - self.spawned_ns])

    # The clock

    def clocked(
        self, stage: str, step: Callable[[], object], collector: bool = False
    ) -> tuple[int, evidence.Counts]:
        """Return what a step took in nanoseconds, and what JAX and its cache did meanwhile.

        With `collector`, Python's garbage collector is left on, and its share is noted.
        """
        self.announce(stage)
        step = self._lengthened(stage, step)
        before = self._entries()
        self.proof.take()
        with gc_timed() if collector else gc_off() as collections_ns:
            cpu_begin = cpu_time_ns()
            begin = _clock()
            step()
            end = _clock()
            self._cpu_ns = [cpu_time_ns() - cpu_begin]
        if collections_ns is not None:
            self.collected_ns[stage] = sum(collections_ns)
        self._programs_ns = self.proof.programs_ns()
        return end - begin, self._with_entries(self.proof.take(), before)

    def timed(self, stage: str, step: Callable[[], object], events: Mapping[str, int]) -> None:
        """Time a step once, and keep the sample if the events are those of its stage.

        Programs that are built inside of it are part of it, and told.
        """
        spent_ns, seen = self.clocked(stage, step)
        count = evidence.programs_within(seen, dict(events))
        if count:
            self.keep(stage, [spent_ns])
            self.programs[stage] = count, self._programs_ns
        else:
            self.judge([(stage, events)], [spent_ns], seen)

    def request_program(self) -> None:
        """Ask for the program, once; with a cache, the events tell which stage that was."""
        if self.build.compiled is not None:
            return
        spent_ns, seen = self.clocked("compile", self.build.compile)
        self._program = self.proof.compiled[-1] if self.proof.compiled else ""
        outcomes = self.scenario.outcomes or (("compile", STAGES["compile"].events),)
        self.judge(outcomes, [spent_ns], seen)
        self.refuse_if_misplaced()

    def repeated_inline(self, stage: str) -> None:
        """Time blocks of calls that are computed on one thread, in the same way."""
        self.announce(stage)
        if True not in self._calls:
            try:
                calls = inline_calls(self.build, self.prepared)
            except NotComputed as error:
                self.unable[stage] = error.why
                return
            executed = dataclasses.replace(calls, call=self._lengthened(stage, calls.call))
            with gc_off():
                self._calls[True] = calls, group(executed, min(self.effort_s, ROUND_S))
        self.repeated(stage, time_blocks, inline=True)

    def repeated(
        self, stage: str, measure: Callable[[Calls, Grouping], Timed], inline: bool = False
    ) -> None:
        """Time many calls of the program, and keep the samples if there is no event."""
        self.announce(stage)
        calls, plan = self._calls[inline]
        calls = dataclasses.replace(calls, call=self._lengthened(stage, calls.call))
        self.proof.take()
        with gc_off():
            timed = measure(calls, plan)
        self._cpu_ns = timed.cpu_ns
        if timed.cpu_ns:
            self.share = statistics.fmean(timed.cpu_ns) / statistics.fmean(timed.calls_ns)
        if timed.reason:
            self.missing[stage] = timed.reason
        if not timed.samples_ns:
            return
        if timed.calls_ns:
            self.calls_ns[stage] = timed.calls_ns
        self.judge([(stage, {})], timed.samples_ns, self.proof.take(), timed.number)

    def _lengthened(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        return injection.lengthened(call, self.prepared.turns.get(stage, 0))

    def make_ready(self) -> None:
        """Call once, off the clock; it must run the very program that was built.

        What a call needs besides, to move its arguments or in a callback, is built in the first.
        """
        if False in self._calls or self._call_problem:
            return
        self.announce("execute")
        self.build.serialise()
        prepared, call = self.prepared, self.call
        arguments = supply(prepared, self.build.compiled)
        self.proof.take()
        first = next(arguments)
        self.proof.take()  # fresh donated buffers are copies, which JAX compiles, once
        built_before = len(self.proof.compiled)
        with gc_off(), self.build.remembered() as answered:
            result = jax.block_until_ready(call(*first))  # it takes a slow path
        problem = evidence.contradiction(self.proof.take(), {})
        others = self.proof.compiled[built_before:]
        if answered or (others and self._program not in others):
            result = jax.block_until_ready(call(*next(arguments)))
            problem = evidence.contradiction(self.proof.take(), {})
        if problem:
            self._call_problem = f"the call did not run the program that was compiled: {problem}"
            return
        donated = None
        if any(prepared.donated(self.build.compiled)):
            donated = nbytes(next(arguments))
        held = nbytes(result), is_there, cpu_devices(result)
        calls = Calls(call, arguments, jax.block_until_ready, donated, *held)
        with gc_off():
            executed = dataclasses.replace(calls, call=self._lengthened("execute", call))
            self._calls[False] = calls, group(executed, self.effort_s / self.passes)

    def warm(self, seconds: float) -> None:
        """Call for so long, off the clock; not what takes longer."""
        if self._call_problem:
            return
        calls, plan = self._calls[False]
        end = _clock() + seconds * 1e9
        while _clock() + plan.once_ns < end:
            calls.ready(calls.call(*next(calls.supply)))

    def rest(self) -> None:
        """Let go of large arguments, which other cases need the memory for."""
        if not self.prepared.holds_data:
            self._calls.clear()

    def _call_once(self) -> Callable[[], object]:
        """Return the first call of the function in this process, to be timed."""
        arguments = self.prepared.data(None)
        build = self.build
        if loaded := isinstance(build, LoadedBuild):
            function = build.call
            self._arguments = arguments
        else:
            function = called(self.prepared, build.jitted)

        def call() -> None:
            result = jax.block_until_ready(function(*arguments))
            self.called_ns = time.monotonic_ns()
            if loaded:
                self._result = result

        return call

    def differs(self) -> str:
        """Return how the result of the first call of what was loaded is not the function's own."""
        if not isinstance(self.build, LoadedBuild):
            return ""
        prepared, arguments = self.prepared, self._arguments
        leaves = jax.tree_util.tree_leaves(arguments)
        if any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in leaves):  # donated
            arguments = prepare(prepared.workload, prepared.case, traces=False).data(None)
        return artefact.problem(called(prepared, wrap(prepared))(*arguments), self._result)

    # The proof

    def _entries(self) -> dict[str, int]:
        return cache_state.entries(self.folder) if self.folder is not None else {}

    def _with_entries(self, seen: evidence.Counts, before: dict[str, int]) -> evidence.Counts:
        """Add to the events what the directory shows: entries that are new, changed or gone."""
        after = self._entries()
        new = after.keys() - before.keys()
        if new:
            self.entry_bytes = self.entry_bytes or sum(after[name] for name in new)
        other = sum(after.get(name) != size for name, size in before.items())
        extra = {"entry": len(new), "changed entry": other}
        return {**seen, **{kind: count for kind, count in extra.items() if count}}

    def judge(
        self,
        outcomes: Sequence[tuple[str, Mapping[str, int]]],
        samples_ns: Sequence[float],
        seen: evidence.Counts,
        number: int = 1,
    ) -> None:
        """Keep samples as the first stage whose events were seen, else refuse them as the first."""
        for stage, events in outcomes:
            if "trace" in events and "trace" in seen:  # jax 0.10 tells some that are inside as well
                seen["trace"] = events["trace"]
            if seen == events:
                self.keep(stage, samples_ns, number)
                return
        stage, events = outcomes[0]
        self.refuse(stage, evidence.contradiction(seen, dict(events)) or "")

    def keep(self, stage: str, samples_ns: Sequence[float], number: int = 1) -> None:
        """Keep samples of a stage."""
        self.samples_ns[stage] = samples_ns
        self.number[stage] = number
        if self._cpu_ns:
            self.cpu_ns[stage], self._cpu_ns = self._cpu_ns, ()

    def refuse(self, stage: str, reason: str) -> None:
        """Throw the samples of a stage away, and say why."""
        kept = self.samples_ns, self.calls_ns, self.programs, self.collected_ns, self.cpu_ns
        for by_stage in kept:
            by_stage.pop(stage, None)
        self._cpu_ns = ()
        self.refused[stage] = reason

    def add_to(self, samples: StageSamples, stage: str) -> None:
        """Add what this pass knows of a stage to its samples."""
        samples.samples_ns += [round(ns, 1) for ns in self.samples_ns.get(stage, ())]
        samples.number = self.number.get(stage, samples.number)
        samples.method = STAGES[stage].method
        samples.unable = self.unable.get(stage, samples.unable)
        if stage in self.programs:
            count, spent_ns = self.programs[stage]
            samples.programs.append(count)
            samples.programs_ns.append(round(spent_ns, 1))
        if stage in self.collected_ns:
            samples.collected_ns.append(self.collected_ns[stage])
        samples.cpu_ns += self.cpu_ns.get(stage, ())
        before = "" if stage in self.samples_ns else samples.reason
        samples.reason = self.missing.get(stage, before)
        if stage in self.refused:
            reason = self.refused[stage]
            samples.refused[reason] = samples.refused.get(reason, 0) + 1

    def refuse_if_misplaced(self) -> None:
        """Refuse all that was taken so far if the program was built for another device."""
        topology = self.prepared.topology
        misplaced = topology.misplaced(self.build.compiled) if topology is not None else ""
        for stage in (*self.samples_ns, *self.refused) if misplaced else ():
            self.refuse(stage, misplaced)


def cpu_time_ns() -> int:
    """Return the CPU time of this process, and of what it started that has ended, such as ptxas."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round((ended.ru_utime + ended.ru_stime) * 1e9)


@contextmanager
def gc_timed() -> Iterator[list[int]]:
    """Let Python's garbage collector run, and note the nanoseconds of each collection."""
    began, spent_ns = 0, list[int]()

    def begin(phase: str, _: object) -> None:
        nonlocal began
        if phase == "start":
            began = _clock()

    def end(phase: str, _: object) -> None:
        if phase == "stop":
            spent_ns.append(_clock() - began)

    # JAX has a callback as well (jax 0.10 to 0.12), which is part of what a collection takes.
    gc.callbacks.insert(0, begin)
    gc.callbacks.append(end)
    try:
        yield spent_ns
    finally:
        gc.callbacks.remove(begin)
        gc.callbacks.remove(end)
