"""Measure here and now, and get a frame: the harness from a notebook or a script."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessWarning, UsageError
from harness.frame.load import frame_of
from harness.jaxhooks.temporary import temporary_folder
from harness.measure.context import Options, local_context
from harness.measure.outcome import Progress
from harness.measure.sweep import sweep as measure
from harness.measure.sweep import sweep_elsewhere
from harness.stages import sampling
from harness.stages.scenarios.registry import find as find_scenario
from harness.workload.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


def sweep(
    workloads: type[Workload] | Sequence[type[Workload]],
    *,
    effort: str = "default",
    targets: Sequence[str] | None = None,
    scenarios: Sequence[str] | None = None,
    results: str | Path | None = None,
    machine: str | None = None,
    first_calls: int | None = None,
    with_baselines: bool = False,
    fresh: bool = False,
    timeout_s: float | None = None,
    memory_limit_bytes: int | None = None,
    seed: int | None = None,
    on: Any = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> pd.DataFrame:
    """Measure workloads on this machine and return the frame of :func:`harness.load`.

    Arguments:
        workloads: one workload class, or several.
        effort: `"quick"` (1 process, 1 pass), `"default"` (8, 3), `"thorough"` (8 to 32, 3), or
            `"PROCESSESxPASSES"` such as `"6x1"`.
        targets: names of targets; None means those that this machine has.
        scenarios: such as `"off"`, `"cold"`, `"warm"`, `"exported"`, `"executable"`; None
            means each workload's own.
        results: a results tree that keeps the records and from which a second call resumes. None
            measures into a temporary folder that is gone afterwards.
        machine: the name of this machine in the results; None means asv's.
        first_calls: processes of its own that take a case's first call, per scenario; 0 for none,
            None leaves it to the workload, or to effort and scenario.
        with_baselines: compare with the workloads' baselines as well; with `results`, read
            :func:`harness.against_baseline` of it afterwards.
        fresh: measure again what `results` already holds.
        timeout_s: seconds that one pass over one case may take; None means the workload's own.
        memory_limit_bytes: what a measuring process may hold; None means 80 % of the machine's.
        seed: the order of visits is drawn from it; None draws a seed, which is recorded.
        on: measure on the workers of a Dask scheduler and not here: its address, or a
            `distributed.Client`; see docs/fleet.md.
        on_progress: called after every message of a measuring process.

    Returns:
        A row per case and stage; see docs/frame.md for the columns.

    Raises:
        UsageError: `machine` together with `on`; nothing was measured.
        WorkloadError: a workload is declared wrongly; nothing was measured.
        StoreError: the results folder cannot take records.
        FleetError: no worker of the scheduler can measure; what arrived is stored in `results`.
    """
    if machine is not None and on is not None:
        raise UsageError(
            f"machine={machine!r} names this machine, and with on= others measure: "
            "leave it out, and set HARNESS_MACHINE where a worker is started."
        )
    chosen = [workloads] if isinstance(workloads, type) else list(workloads)
    options = Options(
        sampling.effort(effort),
        targets=tuple(targets) if targets is not None else None,
        scenarios=tuple(find_scenario(name).name for name in scenarios)
        if scenarios is not None
        else None,
        first_calls=first_calls,
        with_baselines=with_baselines,
        fresh=fresh,
        timeout_s=timeout_s,
        memory_limit_bytes=memory_limit_bytes,
        seed=seed,
    )
    with temporary_folder() as scratch:
        context = local_context(Path(results or scratch), _folder(chosen), machine)
        if on is None:
            outcome = measure(chosen, context, options, on_progress)
        else:
            outcome = sweep_elsewhere(on, chosen, context, options, on_progress, _warn)
    return frame_of(outcome.records)


def _warn(note: str) -> None:
    warnings.warn(note, HarnessWarning, stacklevel=3)


def _folder(workloads: Sequence[type[Workload]]) -> Path:
    """Return the folder whose commit is measured: that of the first workload's file."""
    for workload in workloads:
        try:
            file = Path(inspect.getsourcefile(workload) or "")
        except TypeError:  # typed at a prompt
            continue
        if file.is_file():
            return file.resolve().parent
    return Path.cwd()
