"""Measure one side of a comparison inside its process: visits in random order, and records."""

from __future__ import annotations

import gc
import time

from harness.engine.unit import Bye, Hello
from harness.sides.case_run import CaseRun
from harness.sides.session import Session
from harness.sides.side import Side
from harness.stages.sampling import visits

_clock = time.perf_counter_ns


def measure(session: Session, side: Side) -> None:
    """Measure every case of the session's unit on `side`, and say goodbye."""
    session.send(Hello(session.environment, session.load_average))
    gc.freeze()  # what the imports left need not be looked at again
    began = _clock()
    runs = {ref.index: CaseRun(session, side, ref, case) for ref, case in session.cases()}
    order = visits(list(runs), session.unit.passes, session.unit.seed)
    last = {index: number for number, (_, index) in enumerate(order)}
    for number, (pass_, index) in enumerate(order):
        run = runs[index]
        if not run.over:
            run.visit(pass_)
        if last[index] == number and not run.over:
            run.finish()
    session.send(Bye(session.timed_ns, _clock() - began))
