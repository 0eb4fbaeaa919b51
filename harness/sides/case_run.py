"""One case on one side of a comparison: checked, timed, and made a record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np

from harness.declare import inputs, transforms
from harness.declare.workload import Case, WorkloadError
from harness.engine.board import Visit
from harness.engine.unit import CaseRef, Done
from harness.program.facts import Facts, facts_of
from harness.program.text import fingerprint
from harness.records.comparison import STAGES, Comparison
from harness.records.failure import failure
from harness.records.schema import StageSamples
from harness.sides import attribution, caches, counting, equivalence, guards, threads, timing
from harness.sides.session import Session
from harness.sides.side import Side, Unavailable
from harness.sides.subject import Subject, subject_of
from harness.stages import reference
from harness.stages.passes import Pass

KEEP_BYTES = 64 * 2**20
"""Sets of inputs up to this size in all stay in memory between visits; larger are made anew."""

_clock = time.perf_counter_ns


class CaseRun:
    """The visits to one case in this process, and the record they become."""

    def __init__(self, session: Session, side: Side, ref: CaseRef, case: Case) -> None:
        self.session = session
        self.side = side
        self.ref = ref
        self.case = case
        self.workload = session.workload
        self.over = False
        self.found = Comparison(session.unit.backend, session.unit.threads)
        self.samples: dict[str, StageSamples] = {}
        self.facts: Facts | None = None
        self.fingerprint = ""
        self.loop_ns: list[float] = []
        self.cpu_ns = self.wall_ns = 0
        self.subject: Subject | None = None
        self.call: Callable[..., Any] | None = None
        self._sets: list[tuple[Any, ...]] = []

    def visit(self, pass_: int) -> None:
        """Make one visit; whatever the workload raises ends this case and no other."""
        try:
            self._visit(pass_)
        except (transforms.NotApplicable, Unavailable) as error:
            self._end("skipped", str(error))
        except WorkloadError as error:
            self._end("failed", str(error))
        except (Exception, SystemExit) as error:  # a user's baseline may raise anything
            self._end("failed", failure(error, f"the {self.side.name} side"))

    def _visit(self, pass_: int) -> None:
        first = self.subject is None
        self._announce(pass_, "inputs")
        self.loop_ns.append(float(min(reference.time_loop() for _ in range(10))))
        if self.subject is None:
            self.subject = self._prepare()
        data = None
        if not self._sets:
            data = self._put_sets(self.subject, first)
        builder: Any = self.side if self.side.ahead_of_time else None
        if builder is not None:
            builder.announce = lambda stage: self._announce(pass_, stage)
        if self.call is None:
            self._announce(pass_, "build")
            self.call = self.side.build(self.workload, self.case, self._sets[0])
        if builder is not None:
            self._collect_stages(builder, self.subject)
        if first:
            self._announce(pass_, "check")
            self._check(self.subject, data)
        if self.session.unit.scenario != "warm":
            self._announce(pass_, "slope")
            self._time()
            self._after(builder, first, data)
        if builder is not None:
            self.call = None  # built anew in the next visit: nothing in memory may answer
            builder.forget()
        if self.found.rotated * self.found.argument_bytes > KEEP_BYTES:
            self._sets = []

    def _announce(self, pass_: int, stage: str) -> None:
        self.session.board.write(Visit(self.ref.index, pass_, stage))

    # Before the clock

    def _prepare(self) -> Subject:
        """Find out what the case declares, and how many sets of inputs there are to be."""
        subject = subject_of(self.workload, self.case, type(self.side))
        found = self.found
        found.argument_bytes = subject.argument_bytes
        found.output_bytes = subject.output_bytes
        found.cache_bytes = self.side.cache_bytes()
        found.rotated = caches.set_count(found.argument_bytes, found.cache_bytes)
        if caches.is_resident(
            found.rotated, found.argument_bytes, found.output_bytes, found.cache_bytes
        ):
            self._label(["cache-resident"])
        self._reject(self.session.process.problems)
        self._label(self.session.process.labels)
        return subject

    def _put_sets(self, subject: Subject, first: bool) -> tuple[Any, ...] | None:
        """Make the sets of inputs; return the first in NumPy where it is still to be checked."""
        sets = inputs.data_sets(subject.prepared.arguments, self.found.rotated)
        # A side may compute on the very arrays it is given, and a baseline write into them.
        data = jax.tree_util.tree_map(np.copy, sets[0]) if first else None
        self._sets = [self.side.put(one) for one in sets]
        return data

    def _check(self, subject: Subject, data: Any) -> None:
        """Call once, and hold what comes back against the reference and the rules."""
        call, side = self.call, self.side
        assert call is not None
        found = self.found
        self._reject(guards.constant_inputs(data, subject.parameters))
        before = guards.digest(side.fetch(self._sets[0]))
        begin = _clock()
        result = call(*self._sets[0])
        side.wait(result)
        spent = _clock() - begin
        if not side.ahead_of_time:
            self.samples["first_call"] = StageSamples([float(spent)])
        self.session.timed_ns += spent
        self._reject(side.problems(self._sets[0], result))
        after = guards.digest(side.fetch(self._sets[0]))
        self._reject(guards.mutated(before, after, subject.names))
        expected = equivalence.reference_of(self.workload, self.case, data)
        judged = equivalence.judge(
            side.fetch(result),
            expected,
            subject.declared,
            data,
            self.case.precision,
            subject.has_products,
        )
        found.error, found.gate, found.dtypes = judged.error, judged.gate, judged.dtypes
        self._reject(judged.reasons)
        self._label(judged.labels)
        found.versions = side.versions()

    def _collect_stages(self, builder: Any, subject: Subject) -> None:
        """Keep the samples of what was built ahead of time, and look at the program once."""
        for stage in ("trace", "lower", "compile"):
            self._take_pass(builder.taken, stage)
        self.session.timed_ns += builder.taken.timed_ns
        if self.facts is None:
            build = builder.taken.build
            self.facts = facts_of(build.traced, build.lowered, build.compiled)
            self.fingerprint = fingerprint(build.compiled)
            text = build.compiled.as_text() or ""
            self._reject(guards.unused_arguments(text, subject.jaxpr, subject.names))

    # The clock

    def _time(self) -> None:
        call, side = self.call, self.side
        assert call is not None
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
        self._reject(guards.unfinished(times.unfinished))
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
        self.session.timed_ns += times.wall_ns

    def _after(self, builder: Any, first: bool, data: Any) -> None:
        """Take what would disturb the timing; once is enough."""
        if not first:
            return
        call = self.call
        assert call is not None
        if self.side.eager:
            self.found.operations, self.found.traffic_bytes = counting.count(
                self.workload, self.case, data
            )
        if self.side.asynchronous:
            seen = attribution.attribute(lambda: call(*self._sets[0]))
            if not isinstance(seen, str):
                self.found.launches, self.found.device_ns = seen.launches, seen.device_ns
        if builder is not None:
            loaded = builder.load()
            self._take_pass(loaded, "load")
            self.session.timed_ns += loaded.timed_ns

    # The record

    def _take_pass(self, taken: Pass, stage: str) -> None:
        samples = self.samples.setdefault(stage, StageSamples())
        samples.samples_ns += [round(ns, 1) for ns in taken.samples_ns.get(stage, ())]
        if stage in taken.refused:
            reason = taken.refused[stage]
            samples.refused[reason] = samples.refused.get(reason, 0) + 1

    def _reject(self, reasons: Iterable[str]) -> None:
        self.found.reasons += [r for r in reasons if r not in self.found.reasons]

    def _label(self, labels: Iterable[str]) -> None:
        self.found.labels += [label for label in labels if label not in self.found.labels]

    def finish(self) -> None:
        """Send the record of a case whose visits are all made."""
        found = self.found
        if self.wall_ns:
            found.cpu_per_wall = round(self.cpu_ns / self.wall_ns, 3)
            self._judge_threads(found.cpu_per_wall)
        found.compiles = dict(self.side.compiles())
        self._label(self.side.labels())
        found.comparable = not found.reasons
        proven = any(samples.samples_ns for samples in self.samples.values())
        self._end(
            "ok" if proven else "refused",
            ""
            if proven
            else "; ".join(sorted({r for s in self.samples.values() for r in s.refused})),
            stages={stage: self.samples[stage] for stage in STAGES if stage in self.samples},
            reference_ns={"loop": min(self.loop_ns)},
            fingerprint=self.fingerprint,
            facts=self.facts,
        )

    def _judge_threads(self, cpu_per_wall: float) -> None:
        unit = self.session.unit
        problem = threads.contradiction(unit.threads, cpu_per_wall, self.session.process.cores)
        self._reject([problem] if problem else [])
        if unit.target == "cpu" and threads.disturbed(cpu_per_wall):
            self._label(["disturbed"])

    def _end(self, status: str, reason: str, **fields: Any) -> None:
        self.over = True
        self._sets, self.call = [], None
        record = self.session.record(
            self.ref.key,
            self.found,
            axes=dict(self.case.axes),
            transform=self.case.transform,
            precision=self.case.precision,
            status=status,
            reason=reason,
            **fields,
        )
        self.session.send(Done(record))
