"""One case on one side of a comparison: checked, then timed."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from harness.baselines import counting, equivalence, guards, side_process, timing
from harness.baselines.equivalence import WRONG_VALUES, blame
from harness.baselines.side import Side, Unavailable
from harness.baselines.side_process import ProcessState
from harness.program.facts import Facts, facts_of
from harness.program.text import fingerprint
from harness.records.schema import Comparison, StageSamples
from harness.records.units import counted
from harness.stages import reference, registry
from harness.stages.passes import take_pass
from harness.stages.prepared import Prepared, prepare
from harness.stages.scenarios import cache_state
from harness.workload import inputs
from harness.workload.workload import Case, Workload

KEEP_BYTES = 64 * 2**20
"""Sets of inputs up to this size in all stay in memory between visits; larger are made anew."""

_clock = time.perf_counter_ns


@dataclass
class ComparedCase:
    """A case that one side computes: visit by visit, with all that was found out about it.

    Nothing is made before the first visit.
    """

    workload: type[Workload]
    case: Case
    side: Side
    state: ProcessState
    threads: str
    """How many it may use: `one` or `all`."""
    in_parts = False
    only_fill: bool = False
    """Make the first call only, which fills the side's own cache or is answered by it."""

    def __post_init__(self) -> None:
        self.who = f"the {self.side.name} side"
        self.comparison = Comparison(self.side.name, self.threads)
        self.samples: dict[str, StageSamples] = {}
        self.facts: Facts | None = None
        self.fingerprint = ""
        self.loop_ns: list[float] = []
        self.cpu_ns = self.wall_ns = 0
        self.prepared: Prepared | None = None
        self.jaxpr: Any = None
        self.declared: Any = None
        """The result as a pytree of `jax.ShapeDtypeStruct`: the JAX function decides on dtypes."""
        self.names: list[str] = []
        """Of the input leaves."""
        self.call: Callable[..., Any] | None = None
        self._sets: list[tuple[Any, ...]] = []

    def visit(self, number: int, announce: Callable[[str], None]) -> None:
        """Make one visit.

        Raises:
            WorkloadError: the case is declared wrongly.
            NotApplicable: it cannot be measured here, which is no fault.
            Unavailable: this side has no way to compute it.
        """
        first = self.prepared is None
        announce("inputs")
        self.loop_ns.append(reference.loop_ns())
        if self.prepared is None:
            self.prepared = self._prepare()
        data = None
        if not self._sets:
            sets = inputs.data_sets(self.prepared.arguments, self.comparison.rotated)
            # A side may compute on the very arrays it is given, and a baseline write into them.
            data = jax.tree_util.tree_map(np.copy, sets[0]) if first else None
            self._sets = [self.side.put(one) for one in sets]
        builder: Any = self.side if self.side.ahead_of_time else None
        if builder is not None:
            taken = partial(take_pass, self.prepared, builder.proof, announce=announce)
            builder.take = taken
        call = self.call
        if call is None:
            announce("build")
            call = self.call = self.side.build(self.workload, self.case, self._sets[0])
        if builder is not None:
            self._collect_stages(builder)
        if first:
            announce("check")
            self._check(call, data)
        if not self.only_fill:
            announce("slope")
            self._time(call)
            if first:
                self._after(builder, call, data)
        if builder is not None:
            self.call = None  # built anew in the next visit: nothing in memory may answer
            builder.forget()
        if self.comparison.rotated * self.comparison.argument_bytes > KEEP_BYTES:
            self._sets = []

    # Before the clock

    def _prepare(self) -> Prepared:
        """Trace the JAX function abstractly; find out how many sets of inputs there are to be."""
        if self.workload.donate:
            raise Unavailable(
                "its inputs are donated, and a comparison uses each of them many times"
            )
        prepared = prepare(self.workload, self.case)
        function = partial(prepared.function(), **prepared.static)
        made = jax.make_jaxpr(function, return_shape=True)(*prepared.abstract)
        self.jaxpr, self.declared = made
        given, returned = map(jax.tree_util.tree_leaves, (prepared.abstract, self.declared))
        leaves = [*given, *returned]
        if any(jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended) for leaf in leaves):
            raise Unavailable("it takes or returns PRNG keys, which only JAX has")
        foreign = sorted({leaf.dtype.name for leaf in leaves if leaf.dtype.isbuiltin != 1})
        if foreign and self.side.rounds_narrow_sums:
            raise Unavailable(
                f"NumPy rounds sums of {', '.join(foreign)} after every step, which is no baseline "
                "for a program that sums in float32"
            )
        comparison, cache = self.comparison, self.side.cache_bytes()
        comparison.argument_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in given)
        comparison.output_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in returned)
        comparison.cache_bytes = cache
        comparison.rotated = sets = timing.set_count(comparison.argument_bytes, cache)
        if timing.is_resident(sets, comparison.argument_bytes, comparison.output_bytes, cache):
            self._label(["cache-resident"])
        self._reject(self.state.problems)
        self._label(self.state.labels)
        parameters = list(inspect.signature(self.workload.function).parameters)
        self.names = guards.names_of(prepared.abstract, parameters)
        return prepared

    def _check(self, call: Callable[..., Any], data: Any) -> None:
        """Call once, and hold what comes back against the reference and the rules."""
        side, comparison = self.side, self.comparison
        self._reject(guards.constant_inputs(data, self.names))
        before = guards.digest(side.fetch(self._sets[0]))
        begin = _clock()
        result = call(*self._sets[0])
        side.wait(result)
        spent = _clock() - begin
        if not side.ahead_of_time:
            self.samples["first_call"] = StageSamples([float(spent)])
        self._reject(side.problems(self._sets[0], result))
        after = guards.digest(side.fetch(self._sets[0]))
        self._reject(guards.mutated(before, after, self.names))
        expected = equivalence.reference_of(self.workload, self.case, data)
        program = str(self.jaxpr)
        judge = partial(
            equivalence.judge,
            declared=self.declared,
            inputs=data,
            precision=self.case.precision,
            has_products=any(name in program for name in ("dot_general", "conv_general")),
        )
        fetched = side.fetch(result)
        judged = judge(fetched, expected)
        comparison.error, comparison.gate, comparison.dtypes = (
            judged.error,
            judged.gate,
            judged.dtypes,
        )
        if any(reason.startswith(WRONG_VALUES) for reason in judged.reasons):
            who_is_wrong = blame(self.workload, self.case, data, side.name, fetched, judge)
            if who_is_wrong:
                others = [one for one in judged.reasons if not one.startswith(WRONG_VALUES)]
                judged.reasons = [who_is_wrong, *others]
        self._reject(judged.reasons)
        self._label(judged.labels)
        comparison.versions = side.versions()

    def _collect_stages(self, builder: Any) -> None:
        """Keep the samples of what was built ahead of time, and look at the program once."""
        for stage in ("trace", "lower", "compile"):
            builder.taken.add_to(self.samples.setdefault(stage, StageSamples()), stage)
        if self.facts is None:
            build = builder.taken.build
            self.facts = facts_of(build.traced, build.lowered, build.compiled)
            self.fingerprint = fingerprint(build.compiled)
            text = build.compiled.as_text() or ""
            self._reject(guards.unused_arguments(text, self.jaxpr, self.names))

    # The clock

    def _time(self, call: Callable[..., Any]) -> None:
        side = self.side
        problem = timing.warm(side, call, self._sets)
        if problem:
            self._reject([problem])
        compiled = dict(side.compiles())
        side.built()
        with nullcontext() if problem else side.timed():
            times = timing.measure(side, call, self._sets)
        built = side.built()
        self._reject([f"compilation inside the timed region: {built}"] if built else [])
        self._reject(guards.compiled_inside(compiled, side.compiles()))
        if number := times.unfinished:
            unfinished = f"not done after they were waited for: {counted(number, 'result')}"
            self._reject([f"missing synchronisation: {unfinished}"])
        for stage in ("latency", "dispatch", "slope"):
            samples = self.samples.setdefault(stage, StageSamples())
            samples.samples_ns += [round(ns, 1) for ns in getattr(times, stage)]
        self.samples["slope"].number = times.number
        if times.backwards:
            refused = self.samples["slope"].refused
            reason = "the longer window took no longer than the shorter one"
            refused[reason] = refused.get(reason, 0) + times.backwards
        if side.asynchronous and timing.is_host_bound(times):
            self._label(["host-bound"])
        self.cpu_ns += times.cpu_ns
        self.wall_ns += times.wall_ns

    def _after(self, builder: Any, call: Callable[..., Any], data: Any) -> None:
        """Take what would disturb the timing; once is enough."""
        if self.side.eager:
            self.comparison.operations, self.comparison.traffic_bytes = counting.count(
                self.workload, self.case, data
            )
        seen = timing.attribute(lambda: call(*self._sets[0])) if self.side.asynchronous else None
        if seen:
            self.comparison.launches, self.comparison.device_ns = seen
        if builder is not None:
            with cache_state.switched_on():
                loaded = builder.load()
            loaded.add_to(self.samples.setdefault("load", StageSamples()), "load")

    # The record

    def _reject(self, reasons: Iterable[str]) -> None:
        self.comparison.reasons += [r for r in reasons if r not in self.comparison.reasons]

    def _label(self, labels: Iterable[str]) -> None:
        self.comparison.labels += [label for label in labels if label not in self.comparison.labels]

    def stages(self) -> dict[str, StageSamples]:
        """Return the samples by stage, in the order of the stages."""
        return {stage: self.samples[stage] for stage in registry.STAGES if stage in self.samples}

    def fields(self) -> dict[str, Any]:
        """Return what else its record holds; the comparison is completed by it."""
        comparison = self.comparison
        if self.wall_ns:
            comparison.cpu_per_wall = round(self.cpu_ns / self.wall_ns, 3)
            problem = side_process.contradiction(
                self.threads, comparison.cpu_per_wall, self.state.cores
            )
            self._reject([problem] if problem else [])
            if self.case.target == "cpu" and side_process.disturbed(comparison.cpu_per_wall):
                self._label(["disturbed"])
        comparison.compiles = dict(self.side.compiles())
        self._label(self.side.labels())
        comparison.comparable = not comparison.reasons
        return {
            "reference_ns": {"loop": min(self.loop_ns)},
            "fingerprint": self.fingerprint,
            "facts": self.facts,
        }
