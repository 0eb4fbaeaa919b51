"""Measure workloads on this machine, one process at a time.

Two processes that measure at once disturb each other. Every record is stored as soon as it is
complete, so that a sweep which is ended resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.books import Books, Ear
from harness.books import Outcome as Outcome
from harness.books import Progress as Progress
from harness.declaration import check
from harness.measuring import measure
from harness.plan import Context as Context
from harness.plan import Options as Options
from harness.plan import local_context as local_context
from harness.workload import Workload


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
