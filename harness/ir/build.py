"""Choose the one case that is typed, build its program in a process, and hear what came of it.

The target decides the environment of that process, which JAX reads when it is imported; that is
why the caller's own process cannot build.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import time
from collections.abc import Callable, Sequence

import msgspec

from harness import targets
from harness.errors import ExitCode, HarnessError, UsageError, find_name
from harness.measure.child import Child, of_module
from harness.measure.job import Job
from harness.measure.process import STARTUP_TIMEOUT_S, variables
from harness.program.compiler.callers import CallBranch
from harness.program.compiler.causes import CompileCause
from harness.program.compiler.inside import Inside
from harness.program.compiler.tree import CompileEvent
from harness.program.facts import Facts
from harness.program.kernels import WrittenKernel
from harness.workload import discovery
from harness.workload.location import locate
from harness.workload.workload import (
    SEVERAL_DEVICES,
    TRANSFORMS,
    Case,
    Workload,
    enumerate_cases,
    name_of,
    skip_reason,
)

CHILD = "harness.ir.child"

STAGES = ("jaxpr", "stablehlo", "hlo")
"""The texts of a program: as traced, as lowered, and as XLA optimised it."""


class BuildError(HarnessError):
    """A case cannot be built; the text says in which step, and what was raised."""

    exit_code = ExitCode.SOME_FAILED


class TargetLacking(HarnessError):
    """This machine does not have the target."""

    exit_code = ExitCode.NOTHING


class BuildJob(msgspec.Struct):
    """What a building process is asked for."""

    job: Job
    """Whose source, target and environment are meant; it measures nothing."""
    case: Case
    stage: str
    """Which text is wanted: one of :data:`STAGES`, or none."""
    label: str
    located: bool = False
    """Whether the text says where in the source each operation comes from."""
    with_facts: bool = False
    """Whether facts and fingerprint are wanted, for which the program must be compiled."""
    with_inside: bool = False
    """Whether XLA's own events of its compile are wanted."""
    with_tries: bool = False
    """Whether remedies are tried, each by a compile of the program so changed."""


class BuiltTexts(msgspec.Struct, tag="built"):
    """What a building process made."""

    text: str
    """The text of the stage that was asked for."""
    fingerprint: str = ""
    facts: Facts | None = None
    """None where they were not asked for, as is the fingerprint."""
    constants: str = ""
    """Of their values, where facts were asked for; see :func:`harness.program.text.constants`."""
    inside: Inside | None = None
    """The inside of the compile; None where it was not asked for."""
    events: list[CompileEvent] = []
    """What it is made of."""
    python: list[CallBranch] = []
    """Who makes Python's calls in trace and in lower, where the inside was asked for."""
    stages_s: dict[str, float] = {}
    """What trace and lower took."""
    causes: list[CompileCause] = []
    """What is known to make building slow."""
    written: list[WrittenKernel] = []
    """Kernels in Pallas, Triton or Mosaic, where facts or the inside were asked for."""


class Step(msgspec.Struct, tag="step"):
    """The process begins with a step: `inputs`, `trace`, `lower`, `compile`, `text`."""

    name: str


class Failed(msgspec.Struct, tag="failed"):
    """The process cannot go on, for a reason that the user can mend."""

    reason: str
    no_device: bool = False


Message = BuiltTexts | Step | Failed

decoded = msgspec.json.Decoder(Message).decode
"""What a building process has sent."""


def job(
    workload: type[Workload],
    case: Case,
    stage: str = "hlo",
    **wanted: bool,
) -> BuildJob:
    """Describe the building of one case, for its text of `stage` and what else is `wanted` of it.

    That are the fields of :class:`BuildJob` that may be left out.

    Raises:
        UsageError: there is no such target.
        TargetLacking: this machine does not have it.
    """
    target = targets.find(case.target)
    lacking = target.lacking()
    if lacking:
        raise TargetLacking(f"Target {case.target!r}: {lacking}. Name another with --target.")
    several = case.transform in SEVERAL_DEVICES and target.family == "cpu"
    place = Job(
        source=locate(workload),
        target=target.name,
        description=target.description,
        platforms=target.platforms,
        environment=dict(target.environment),
        cpu_devices=targets.virtual_cpu_devices() if several else 0,
        x64=workload.x64,
        cases=[],
        timeout_s=workload.timeout_s,
    )
    label = " ".join(filter(None, (name_of(workload), case.label)))
    return BuildJob(place, case, stage, label, **wanted)


def build(wanted: BuildJob, on_step: Callable[[str], None] = lambda step: None) -> BuiltTexts:
    """Run `wanted` in a process of its own and return what it made.

    `on_step` is called with the name of each step as it begins. A step that takes longer than the
    workload's `timeout_s` is ended. Whatever happens here, a Ctrl-C included, the process and all
    that it started are gone afterwards. Once the program is compiled it is returned then, with
    what of Python's calls is counted and of the remedies is tried.

    Raises:
        BuildError: the workload raised, or the process did not survive.
        TargetLacking: JAX finds no such device after all.
    """
    timeout_s = wanted.job.timeout_s
    step, deadline = "start", time.monotonic() + STARTUP_TIMEOUT_S
    made: BuiltTexts | None = None

    def watch() -> None:
        if time.monotonic() > deadline:
            raise BuildError(
                f"{wanted.label}: the step {step!r} was not done after {timeout_s:g} s "
                "and was stopped. `timeout_s` of the workload says how long it may take."
            )

    with Child(of_module(CHILD), variables(wanted.job)) as child:
        child.send(msgspec.json.encode(wanted))
        try:
            for line in child.lines(watch):
                message = decoded(line)
                if isinstance(message, Failed):
                    kind = TargetLacking if message.no_device else BuildError
                    raise kind(f"{wanted.label}: {message.reason}")
                if isinstance(message, BuiltTexts):
                    made = message
                else:
                    step, deadline = message.name, time.monotonic() + timeout_s
                    on_step(step)
        except (BuildError, KeyboardInterrupt):
            if made is None:
                raise
        if made is not None:
            return made
        how = f"the building process ended in the step {step!r}: {child.how}"
        raise BuildError("\n  ".join([f"{wanted.label}: {how}", *child.output]))


# Which case is meant


class SeveralCases(UsageError):
    """What was typed leaves several cases; the text lists them."""


LISTED = 20
"""A longer list of cases is cut."""


def one_case(
    workload: type[Workload],
    choices: Sequence[str] = (),
    transform: str | None = None,
    target: str | None = None,
) -> Case:
    """Return the one case that is meant.

    `choices` are `AXIS=VALUE` texts, `transform=` and `target=` among them; a transform or target
    that the workload does not list may be asked for. Without them it is `forward`, if the workload
    has it, and the first of its targets that this machine has.
    """
    keep = discovery.case_filter(choices)
    typed: dict[str, list[str]] = {"transform": [], "target": []}
    own: list[str] = []
    for choice in choices:
        axis, _, value = (part.strip() for part in choice.partition("="))
        typed.get(axis, own).append(value if axis in typed else choice)
    named = [transform] if transform else typed["transform"]
    wanted = [find_name(name, TRANSFORMS, "transform") for name in named] or _usual(workload)
    places = targets.names([target] if target else typed["target"]) or (_here(workload),)
    left = [case for case in _cases(workload, wanted, places) if keep(case)]
    if not left:
        if own:
            discovery.with_axes([workload], own)  # raises with what there is, if they are at fault
        raise UsageError(
            f"{name_of(workload)} has no case with {' and '.join(choices)} among those with "
            f"transform {', '.join(wanted)} and target {', '.join(places)}."
        )
    reasons = [skip_reason(workload, case) for case in left]
    able = [case for case, reason in zip(left, reasons, strict=True) if reason is None]
    if not able:
        raise UsageError(
            f"{name_of(workload)} skips {left[0].label or left[0].id}: {reasons[0]}. "
            "Choose another case with --case AXIS=VALUE."
        )
    if len(able) > 1:
        raise SeveralCases(_several(workload, able))
    return able[0]


def changed(workload: type[Workload], case: Case, changes: str) -> Case:
    """Return the case that `changes`, such as `batch=64,dtype=float32`, makes of another."""
    # A value may hold commas itself: only those before the next AXIS= part the changes.
    given = re.split(r",(?=[^=,]+=)", changes)
    changed_axes = {change.partition("=")[0].strip() for change in given}
    rest = [
        f"{axis}={value if axis in ('transform', 'target') else repr(value)}"
        for axis, value in case.coordinates.items()
        if axis not in changed_axes
    ]
    return one_case(workload, [*given, *rest])


def _cases(workload: type[Workload], wanted: Sequence[str], places: Sequence[str]) -> list[Case]:
    first = workload.transforms[0]
    points = [case for case in enumerate_cases(workload, places) if case.transform == first]
    return [dataclasses.replace(case, transform=name) for case in points for name in wanted]


def _usual(workload: type[Workload]) -> list[str]:
    return ["forward"] if "forward" in workload.transforms else list(workload.transforms)


def _here(workload: type[Workload]) -> str:
    there = [name for name in workload.targets if not targets.find(name).lacking()]
    return there[0] if there else workload.targets[0]


def _several(workload: type[Workload], cases: Sequence[Case]) -> str:
    values: dict[str, set[str]] = {}
    for case in cases:
        for axis, value in case.coordinates.items():
            values.setdefault(axis, set()).add(repr(value))
    axes = [axis for axis, several in values.items() if len(several) > 1]
    lines = [
        " ".join(f"--case {shlex.quote(f'{axis}={case.coordinates[axis]}')}" for axis in axes)
        for case in cases[:LISTED]
    ]
    if len(cases) > LISTED:
        lines.append(f"... and {len(cases) - LISTED} more")
    return "\n  ".join([f"{name_of(workload)} has {len(cases)} such cases; add one of", *lines])
