"""Which cases can be shipped, and what a process that starts one is told."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness import targets
from harness.declare import discovery, location
from harness.declare.workload import Case, Workload, enumerate_cases, name_of, skip_reason
from harness.errors import UsageError
from harness.stages.scenarios.registry import SCENARIOS
from harness.stages.scenarios.scenario import forgotten

ONE_DEVICE = ("forward", "gradient", "vmap")
"""The transforms whose programs run on one device."""


def cases_of(
    workload: type[Workload], choices: Sequence[str] = (), target: str = "cpu"
) -> list[Case]:
    """Return the cases on one target and one device that are not skipped.

    `choices` are `AXIS=VALUE` texts; see :func:`harness.declare.discovery.case_filter`.
    """
    place = targets.find(target)
    lacking = place.lacking()
    if place.compile_only:
        lacking = "it is compiled for without a device, and what is asked for here runs programs"
    if lacking:
        raise UsageError(f"target {target!r}: {lacking}. Name another with --target.")
    if choices:
        discovery.with_axes([workload], choices)  # raises with what there is
    keep = discovery.case_filter(choices)
    left = [
        case
        for case in enumerate_cases(workload)
        if case.target == target and case.transform in ONE_DEVICE and keep(case)
    ]
    wanted = [case for case in left if skip_reason(workload, case) is None]
    if not wanted:
        why = "its skip leaves all of them out" if left else "none matches"
        raise UsageError(
            f"{name_of(workload)} has no case to try on {target!r}: {why}. What is compared here "
            f"needs one device: transform {', '.join(ONE_DEVICE)}"
            + (f"; asked for: {' and '.join(choices)}." if choices else ".")
        )
    return wanted


def job(workload: type[Workload], cases: Sequence[Case]) -> dict[str, Any]:
    """Return where another process finds these cases: the workload, and positions in its sweep."""
    known = [case.id for case in enumerate_cases(workload)]
    return {
        "source": msgspec.to_builtins(location.locate(workload)),
        "cases": [known.index(case.id) for case in cases],
    }


def read(job: dict[str, Any]) -> tuple[type[Workload], list[Case]]:
    """Return the workload and the cases of :func:`job`."""
    workload = location.load(msgspec.convert(job["source"], location.Source))
    known = list(enumerate_cases(workload))
    return workload, [known[position] for position in job["cases"]]


def variables(workload: type[Workload], case: Case, cache: Path | None) -> dict[str, str]:
    """Return the environment of a process: the caller's, with this cache and no other.

    `cache` is the directory of the persistent cache; None switches it off.
    """
    kept = forgotten(os.environ)
    # A number of devices asked for elsewhere would change what is compiled here.
    kept.pop("JAX_NUM_CPU_DEVICES", None)
    kept["JAX_PLATFORMS"] = targets.find(case.target).platforms
    if workload.x64:
        kept["JAX_ENABLE_X64"] = "1"
    # As in a cold and a warm scenario everything is stored, whatever it cost.
    scenario = SCENARIOS["off" if cache is None else "warm"]
    return kept | scenario.environment(str(cache or ""))
