"""Choose the cases that a cache experiment is about."""

from __future__ import annotations

from collections.abc import Sequence

from harness import targets
from harness.declare import discovery
from harness.declare.workload import Case, Workload, enumerate_cases, name_of, skip_reason
from harness.errors import UsageError

ONE_DEVICE = ("forward", "gradient", "vmap")
"""The transforms whose programs run on one device."""


def cases_of(
    workload: type[Workload], choices: Sequence[str] = (), target: str = "cpu"
) -> list[Case]:
    """Return the cases on one target and one device that are not skipped.

    Args:
        workload: whose cases.
        choices: `AXIS=VALUE` texts; see :func:`harness.declare.discovery.case_filter`.
        target: where the program runs.

    Raises:
        UsageError: no case is left, or this machine lacks the target.
    """
    found = targets.find(target)
    lacking = found.lacking()
    if found.compile_only:
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


def check_processes(processes: int) -> None:
    """Raise :class:`UsageError` if nothing could be measured in so few processes."""
    if processes < 1:
        raise UsageError(f"processes is {processes}; expected a whole number of at least 1.")


def position_of(workload: type[Workload], case: Case) -> int:
    """Return the position of a case in its workload's sweep, by which another process finds it."""
    return [known.id for known in enumerate_cases(workload)].index(case.id)
