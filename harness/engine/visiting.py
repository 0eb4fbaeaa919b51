"""Measure one unit inside its process: visits to its cases in random order, and their records."""

from __future__ import annotations

import time

from harness.declare.workload import Case
from harness.engine.board import REFERENCE
from harness.engine.case_run import CaseRun
from harness.engine.session import Session
from harness.engine.unit import Bye, matched
from harness.stages.reference import Reference
from harness.stages.sampling import visits

_clock = time.perf_counter_ns


def measure(session: Session) -> None:
    """Measure every case of the session's unit, and say goodbye."""
    session.begin()
    began = _clock()
    runs = {REFERENCE: CaseRun(session, None, Reference, Case())}
    for ref, case, reason in matched(session.unit, session.workload):
        if case is None:
            session.fail(ref.key, reason)
        else:
            runs[ref.index] = CaseRun(session, ref, session.workload, case)
    _visit(session, runs)
    session.send(Bye(session.timed_ns, _clock() - began))


def _visit(session: Session, runs: dict[int, CaseRun]) -> None:
    # The reference goes first as well, so that a quick process is calibrated before it ends.
    order = visits(list(runs), session.unit.passes, session.unit.seed)
    last = {index: number for number, (_, index) in enumerate(order)}
    waiting: list[CaseRun] = []
    for number, (pass_, index) in enumerate(order):
        run = runs[index]
        if run.over:
            continue
        run.visit(pass_)
        if last[index] == number and not run.over:
            waiting.append(run)
        if runs[REFERENCE].passes or runs[REFERENCE].over:
            for done in waiting:
                done.finish(runs[REFERENCE])
            waiting.clear()
