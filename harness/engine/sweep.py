"""Measure workloads on this machine, one process at a time.

Two processes that measure at once disturb each other. Every record is stored as soon as it is
complete, so that a sweep which is ended resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.declare.check import check
from harness.declare.workload import Workload
from harness.engine.context import Context, Options
from harness.engine.execution import execute
from harness.engine.state import GroupListener, Outcome, Progress, SweepState

Driver = Callable[[Sequence[type[Workload]], Context, Options, Callable[[Progress], None]], Outcome]
"""What measures workloads: `sweep` does it here, others may on other machines."""


def sweep(
    workloads: Sequence[type[Workload]],
    context: Context,
    options: Options,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Measure every case of `workloads`, one process at a time, and return what there is then.

    Raises:
        WorkloadError: a workload is declared wrongly; nothing has been measured.
        StoreError: the results folder cannot take records; those before are kept.
    """
    for workload in workloads:
        check(workload)
    outcome = Outcome()
    state = SweepState(workloads, context, options, on_progress, outcome)
    state.note_skipped()
    for process in range(options.effort.limit):
        for group in state.groups:
            job = state.job(group, process)
            if job:
                execute(job, GroupListener(state, group, process))
    state.close()
    return outcome
