"""One cold pass through trace, lower, compile and execute: timed, and proven by events."""

from __future__ import annotations

import dataclasses
import functools
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax

from harness.stages import injection, sampling
from harness.stages.preparing import Prepared, supply, wrap
from harness.watch import evidence

NO_PMAP_TRACE = "jax.pmap has no trace step of its own; its lower stage traces as well"

_clock = time.perf_counter_ns


@dataclass
class Pass:
    """What one pass gave: nanoseconds by stage, or why a sample was refused."""

    samples_ns: dict[str, list[float]] = field(default_factory=dict)
    number: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Why there is no sample of a stage, where that is no fault."""
    traced: Any = None
    lowered: Any = None
    compiled: Any = None
    timed_ns: float = 0.0
    """Time spent inside timed regions, refused samples included."""
    entry_bytes: int = 0
    """What the persistent cache wrote for the program."""

    def judge(
        self,
        stage: str,
        samples_ns: list[float],
        number: int,
        seen: evidence.Counts,
        expected: evidence.Counts,
    ) -> None:
        """Keep samples whose events are what their stage needs, refuse them otherwise."""
        problem = evidence.contradiction(seen, expected)
        if problem:
            self.refuse(stage, problem)
        else:
            self.samples_ns[stage] = samples_ns
            self.number[stage] = number

    def forget(self) -> None:
        """Let go of what was built: nothing of it may answer the next pass."""
        self.traced = self.lowered = self.compiled = None

    def refuse(self, stage: str, reason: str) -> None:
        """Throw the samples of a stage away, and say why."""
        self.samples_ns.pop(stage, None)
        self.refused[stage] = reason


def cold_pass(
    prepared: Prepared,
    proof: evidence.Evidence,
    announce: Callable[[str], None] = lambda stage: None,
    effort_s: float = sampling.EXECUTE_S,
) -> Pass:
    """Take every stage once, from nothing in memory; execute for about `effort_s` seconds.

    What is prepared for a topology is compiled and not run.

    `announce` is called with the name of each stage before it begins, outside the clock.
    """
    taken = Pass()
    call = build(taken, prepared, proof, announce)
    if prepared.topology is not None:
        misplaced = prepared.topology.misplaced(taken.compiled)
        for stage in ("trace", "lower", "compile") if misplaced else ():
            taken.refuse(stage, misplaced)
        taken.missing = dict.fromkeys(("dispatch", "execute"), prepared.topology.not_run)
        return taken
    announce("execute")
    _run(taken, prepared, call, proof, effort_s)
    return taken


def build(
    taken: Pass,
    prepared: Prepared,
    proof: evidence.Evidence,
    announce: Callable[[str], None] = lambda stage: None,
) -> Callable[..., Any]:
    """Trace, lower and compile once, from nothing in memory; return what is to be called."""
    jax.clear_caches()
    jitted = wrap(prepared)
    keywords = {} if prepared.is_pmap else prepared.static

    def timed(stage: str, step: Callable[[], Any]) -> Any:
        announce(stage)
        step = injection.lengthened(step, prepared.turns.get(stage, 0))
        proof.take()
        with gc_off():
            begin = _clock()
            result = step()
            end = _clock()
        taken.judge(stage, [end - begin], 1, proof.take(), prepared.expected[stage])
        taken.timed_ns += end - begin
        return result

    if prepared.is_pmap:
        lowered = timed("lower", lambda: jitted.lower(*prepared.abstract))
    else:
        traced = timed("trace", lambda: jitted.trace(*prepared.abstract, **keywords))
        if prepared.was_given(traced.jaxpr):
            taken.refuse("trace", "JAX gave back the jaxpr of the last pass: nothing was traced")
        taken.traced = traced
        lowered = timed("lower", traced.lower)
    taken.lowered = lowered
    taken.compiled = timed("compile", lowered.compile)

    # What is timed is what users call: the jitted function. Only pmap's own call would compile a
    # second time (jax 0.10 to 0.12), so there it is the compiled program.
    return taken.compiled if prepared.is_pmap else functools.partial(jitted, **keywords)


def _run(
    taken: Pass,
    prepared: Prepared,
    call: Callable[..., Any],
    proof: evidence.Evidence,
    effort_s: float,
) -> None:
    """Time the jitted function as users call it: until it returns, and until it has finished."""
    donating = bool(prepared.workload.donate)
    calls = supply(prepared, taken.compiled)
    proof.take()
    arguments = next(calls)
    proof.take()  # fresh donated buffers are copies, which JAX compiles, once
    jax.block_until_ready(call(*arguments))  # the first call takes a slow path: dropped
    first = proof.take()
    problem = evidence.contradiction(first, {})
    if problem:
        reason = f"the call did not run the program that was compiled: {problem}"
        taken.refused["dispatch"] = taken.refused["execute"] = reason
        return
    returning = injection.lengthened(call, prepared.turns.get("dispatch", 0))
    finishing = injection.lengthened(call, prepared.turns.get("execute", 0))
    with gc_off():
        plan = sampling.plan_blocks(finishing, calls, donating, effort_s)
        only_calls = dataclasses.replace(plan, blocks=0)
        only_blocks = dataclasses.replace(plan, dispatches=0)
        proof.take()
        returned = sampling.time_blocks(returning, calls, only_calls, donating)
        ended = sampling.time_blocks(finishing, calls, only_blocks, donating)
    seen = proof.take()
    taken.judge("dispatch", returned.dispatched, 1, seen, prepared.expected["dispatch"])
    taken.judge("execute", ended.finished, plan.number, seen, prepared.expected["execute"])
    taken.timed_ns += returned.spent_ns + ended.spent_ns


@contextmanager
def gc_off() -> Iterator[None]:
    """Keep Python's garbage collector out of the clock; it runs between samples instead."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
