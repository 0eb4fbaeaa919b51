"""Measuring processes of what is taken apart from visits: first calls, and `compute`."""

from __future__ import annotations

import functools
import gc
import random
import time

from msgspec.structs import replace

from harness.declare.code import LoadedCode
from harness.declare.workload import Case
from harness.engine import channel
from harness.engine.job import (
    Bye,
    CurrentVisit,
    Done,
    Job,
    JobCase,
    unmeasured,
    workload_of,
)
from harness.engine.session import CaseRun, Send, StagedSession
from harness.stages import injection
from harness.stages.compute import LONG_S, VISITS
from harness.stages.sampling import visits
from harness.stages.staged_case import ComputeCase, FirstCallCase, StagedCase
from harness.watch.evidence import Evidence

_clock = time.perf_counter_ns


class FirstCallSession(StagedSession):
    """A process that has woken a back end, and does nothing before the first call."""

    def measure(self) -> None:
        """Take the first call of the job's case; nothing else is built, none of memory frozen."""
        self.greet()
        began = _clock()
        for run in self.runs().values():
            run.visit(0)
            if run.record is None:
                self.finish(run)
        self.send(Bye(self.timed_ns, _clock() - began))

    def measured(self, ref: JobCase, case: Case) -> StagedCase:
        """Return the case that is called."""
        return self.staged(FirstCallCase, ref, case, spawned_ns=channel.spawned_ns())


class ComputeSession(StagedSession):
    """One workload's part of a process that runs programs on one thread, many workloads' mixed."""

    def measured(self, ref: JobCase, case: Case) -> StagedCase:
        """Return a case that is built and computed inline."""
        return self.staged(ComputeCase, ref, case)


def measure(job: Job, send: Send, current: CurrentVisit, code: LoadedCode, proof: Evidence) -> None:
    """Take `compute` of all cases of a process whose back end is awake, in random order."""
    sessions = []
    for part in job.parts:
        workload = workload_of(part, functools.partial(_fail, part, send))
        if workload is not None:
            own = replace(part, surroundings=job.surroundings)
            sessions.append(ComputeSession(own, workload, send, current, code, proof, None))
    began = _clock()
    if sessions:
        first = sessions[0]
        first.greet()
        first.prepare()
        extra = any(ref.extra_ns for ref in job.all_cases)
        work = injection.measure_work() if extra else None
        gc.freeze()
        runs: dict[str, CaseRun] = {}
        for session in sessions:
            session.work = work
            runs |= session.runs()
        _visit(runs, job.seed)
    send(Bye(sum(session.timed_ns for session in sessions), _clock() - began))


def _fail(part: Job, send: Send, reason: str) -> None:
    for ref in part.cases:
        send(Done(unmeasured(part, ref, "failed", reason)))


def _visit(runs: dict[str, CaseRun], seed: int) -> None:
    """Visit cases in random order; a disturbed one is repeated at the end, also at random."""
    for number, key in visits(list(runs), VISITS, seed):
        _visit_once(runs[key], number)
    again = [
        run
        for run in runs.values()
        if isinstance(run.measured, ComputeCase) and run.measured.samples["compute"].disturbed
    ]
    for run in random.Random(seed).sample(again, len(again)):
        _visit_once(run, VISITS)
    for run in runs.values():
        if run.record is None:
            run.session.finish(run)


def _visit_once(run: CaseRun, number: int) -> None:
    assert isinstance(run.measured, ComputeCase)
    compiled_ns = run.measured.samples["compile"].samples_ns
    if not run.over and not (compiled_ns and min(compiled_ns) > LONG_S * 1e9):
        run.visit(number)
