"""One cold pass through trace, lower, compile and execute: timed, and proven by events."""

from __future__ import annotations

import dataclasses
import functools
import gc
import inspect
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax

from harness import evidence, injection, inputs, sampling, transforms
from harness.workload import Case, Workload, make_inputs, static_arguments, where

if TYPE_CHECKING:
    from harness.topologies import Topology

CPU_IS_IEEE = "XLA:CPU multiplies float32 in IEEE whatever is asked for"

NO_PMAP_TRACE = "jax.pmap has no trace step of its own; its lower stage traces as well"

_KEEP_DATA_BYTES = 64 * 2**20
"""Inputs up to this size stay in memory between passes; larger ones are made anew."""

_clock = time.perf_counter_ns


@dataclass
class Prepared:
    """A case made ready to be measured: everything that does not depend on the pass."""

    workload: type[Workload]
    case: Case
    arguments: tuple[Any, ...]
    """Specs or arrays, after the transform."""
    abstract: tuple[Any, ...]
    """The same as `jax.ShapeDtypeStruct`, with shardings where the transform has them."""
    shardings: Any
    static: dict[str, Any]
    expected: dict[str, evidence.Counts]
    topology: Topology | None = None
    """What the case is compiled for without being run; None where it is run."""
    turns: dict[str, int] = field(default_factory=dict)
    """Extra work by stage; see :mod:`harness.injection`. A stage that is not named has none."""
    _data: tuple[Any, ...] | None = field(default=None, repr=False)
    _jaxpr: Callable[[], Any] = field(default=lambda: None, repr=False)
    """The jaxpr of the last pass, if it is still alive: nothing of ours keeps it so."""

    @property
    def is_pmap(self) -> bool:
        """Whether `jax.pmap` stands in for `jax.jit`."""
        return self.case.transform == "pmap"

    @property
    def donated_positions(self) -> tuple[int, ...]:
        """Which of the arguments are donated."""
        names = list(inspect.signature(self.workload.function).parameters)[: len(self.arguments)]
        return tuple(i for i, name in enumerate(names) if name in self.workload.donate)

    def data(self, compiled: Any) -> tuple[Any, ...]:
        """Return the arguments as arrays on the devices that the program wants them on."""
        if self._data is not None:
            return self._data
        filled = inputs.fill(self.arguments)
        if self.is_pmap:
            filled = jax.device_put(filled, compiled.input_shardings[0])
        elif self.shardings is not None:
            filled = jax.device_put(filled, self.shardings)
        else:
            filled = jax.device_put(filled)  # uncommitted, as a user's arrays are
        data: tuple[Any, ...] = jax.block_until_ready(filled)
        if sum(leaf.nbytes for leaf in jax.tree_util.tree_leaves(data)) <= _KEEP_DATA_BYTES:
            self._data = data
        return data


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


def prepare(workload: type[Workload], case: Case, topology: Topology | None = None) -> Prepared:
    """Make a case ready to be measured; with a `topology` it is compiled for that, and not run.

    Raises:
        WorkloadError: the case is declared wrongly.
        NotApplicable: it cannot be measured here, which is no fault.
    """
    if case.transform == "pmap" and not hasattr(jax, "pmap"):
        raise transforms.NotApplicable(f"jax {jax.__version__} has no jax.pmap")
    if case.target == "cpu" and case.precision not in ("", "ieee"):
        raise transforms.NotApplicable(CPU_IS_IEEE)
    if case.transform == "pmap" and topology is not None:
        raise transforms.NotApplicable(
            f"jax.pmap compiles for devices that are there, and there is no {topology.target} here"
        )
    arguments = transforms.adapt_inputs(workload, case, make_inputs(workload, case))
    abstract = inputs.abstract(arguments, f"{where(workload)}, {case.id}")
    shardings = transforms.shardings(case, abstract, topology.several if topology else None)
    if shardings is None and topology is not None:
        shardings = jax.tree_util.tree_map(lambda _: topology.one, abstract)
    if shardings is not None:
        abstract = jax.tree_util.tree_map(
            lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
            abstract,
            shardings,
        )
    expected = evidence.PMAP if case.transform == "pmap" else evidence.COLD
    static = static_arguments(workload, case)
    return Prepared(workload, case, arguments, abstract, shardings, static, expected, topology)


def wrap(prepared: Prepared) -> Any:
    """Return a new jitted (or pmapped) function that shares no cache with an earlier one."""
    function = transforms.transformed(prepared.workload, prepared.case)
    if prepared.is_pmap:
        fixed = functools.wraps(function)(functools.partial(function, **prepared.static))
        return jax.pmap(fixed, donate_argnums=prepared.donated_positions)
    placed: dict[str, Any] = {}
    if prepared.topology is not None and not jax.tree_util.tree_leaves(prepared.abstract):
        placed["out_shardings"] = prepared.topology.one  # no input says what is compiled for
    return jax.jit(
        function,
        static_argnames=tuple(prepared.workload.static),
        donate_argnames=tuple(prepared.workload.donate),
        **placed,
    )


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
        if traced.jaxpr is prepared._jaxpr():
            taken.refuse("trace", "JAX gave back the jaxpr of the last pass: nothing was traced")
        prepared._jaxpr = weakref.ref(traced.jaxpr)
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


def supply(prepared: Prepared, compiled: Any) -> Iterator[tuple[Any, ...]]:
    """Yield arguments for one call after another: the same, with fresh buffers where donated."""
    data = prepared.data(compiled)
    if not prepared.workload.donate:
        while True:
            yield data
    while True:
        arguments = list(data)
        for position in prepared.donated_positions:
            arguments[position] = jax.tree_util.tree_map(lambda x: x.copy(), data[position])
        yield tuple(jax.block_until_ready(arguments))


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
