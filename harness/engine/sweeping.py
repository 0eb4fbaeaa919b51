"""Measure workloads on this machine, one process at a time.

Two processes that measure at once disturb each other. Every record is stored as soon as it is
complete, so that a sweep which is ended resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.declare.check import check
from harness.declare.workload import Workload
from harness.engine.books import Books, Ear
from harness.engine.books import Outcome as Outcome
from harness.engine.books import Progress as Progress
from harness.engine.measuring import measure
from harness.engine.plan import Context as Context
from harness.engine.plan import Options as Options
from harness.engine.plan import local_context as local_context


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
    books = Books(workloads, context, options, on_progress, outcome)
    books.note_skipped()
    for process in range(options.effort.limit):
        for share in books.shares:
            order = books.order(share, process)
            if order:
                measure(order, Ear(books, share, process))
    books.close()
    return outcome
