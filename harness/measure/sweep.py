"""Measure workloads on this machine, one process at a time.

Two processes that measure at once disturb each other. Every record is stored as soon as it is
complete, so that a sweep which is ended resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.metadata import entry_points
from pathlib import Path
from time import monotonic
from typing import Any

from harness.errors import FleetError
from harness.measure.context import Context, Options
from harness.measure.execution import execute
from harness.measure.lock import measuring, tidy
from harness.measure.machine_load import Others
from harness.measure.outcome import Outcome, Progress, warn
from harness.measure.parents import Parents
from harness.measure.state import GroupListener, SweepState
from harness.workload.check import check
from harness.workload.workload import Workload

ROUNDS = 3
"""The first measures everything, the others what ran code that was edited meanwhile."""


def sweep(
    workloads: Sequence[type[Workload]],
    context: Context,
    options: Options,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    earlier: Path | None = None,
) -> Outcome:
    """Measure every case of `workloads`, one process at a time, and return what there is then.

    `earlier` is the folder of records that tell how long that will take, where it is another one.

    Raises:
        WorkloadError: a workload is declared wrongly; nothing has been measured.
        UsageError: others measure on this machine, and it is not to wait for them.
        StoreError: the results folder cannot take records; those before are kept.
    """
    for workload in workloads:
        check(workload)
    tidy(warn(on_progress))
    outcome, others = Outcome(), Others()
    state = SweepState(workloads, context, options, on_progress, outcome)
    outcome.left_out = state.plan.left_out
    state.note_skipped()
    with ExitStack() as held:
        is_alone = False
        for _ in range(ROUNDS):
            measured = False
            with Parents() as parents:  # new ones where they have loaded what was edited meanwhile
                for process in range(state.rounds):
                    for group in state.groups:
                        job = state.job(group, process)
                        if job and not is_alone:
                            held.enter_context(measuring(warn(on_progress), options.wait))
                            # What was waited for may have measured some of it.
                            job = state.job(group, process)
                            is_alone = True
                            if job:
                                state.begin(earlier)
                        if job:
                            listener, began = GroupListener(state, group, process), monotonic()
                            execute(job, listener, parents if options.forked else None)
                            state.end(job, monotonic() - began)
                            measured = True
            if not measured:
                break
    outcome.others_cores = others.cores()
    state.close()
    return outcome


def sweep_elsewhere(where: Any, *arguments: Any, **named: Any) -> Outcome:
    """Do what :func:`sweep` does on the workers of a Dask scheduler.

    Args:
        where: its address, or a client of it.
        arguments: as :func:`sweep` takes them.
        named: what :func:`harness.fleet.client.sweep` takes besides.

    Raises:
        FleetError: Dask or `harness.fleet` is not installed.
    """
    try:
        (offered,) = entry_points(group="harness.fleet", name="sweep")
        measure = offered.load()
    except (ValueError, ModuleNotFoundError) as error:
        raise FleetError(
            f"Measuring on other machines needs harness.fleet and Dask: {error}. Install them: "
            "pip install 'jax-harness[fleet]'."
        ) from error
    outcome: Outcome = measure(where, *arguments, **named)
    return outcome
