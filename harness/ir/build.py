"""Build the program of one case in a process of its own, and hear what came of it.

The target decides the environment of that process, which JAX reads when it is imported; that is
why the caller's own process cannot build.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from harness import targets
from harness.declare.location import locate
from harness.declare.workload import SEVERAL_DEVICES, Case, Workload, name_of
from harness.engine.child import Child
from harness.engine.job import Job
from harness.engine.process import STARTUP_TIMEOUT_S, variables
from harness.errors import ExitCode, HarnessError
from harness.program.compiler.callers import CallBranch
from harness.program.compiler.inside import Inside, Remedy
from harness.program.compiler.tree import CompileEvent
from harness.program.facts import Facts

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
    axes: dict[str, Any]
    transform: str
    precision: str
    stage: str
    """Which text is wanted: one of :data:`STAGES`, or none."""
    label: str
    timeout_s: float
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
    inside: Inside | None = None
    """The inside of the compile; None where it was not asked for."""
    events: list[CompileEvent] = []
    """What it is made of."""
    python: list[CallBranch] = []
    """Who makes Python's calls in trace and in lower, where the inside was asked for."""
    remedies: list[Remedy] = []
    """What is known to make the compile slow, and what helps."""


class Step(msgspec.Struct, tag="step"):
    """The process begins with a step: `inputs`, `trace`, `lower`, `compile`, `text`."""

    name: str


class Failed(msgspec.Struct, tag="failed"):
    """The process cannot go on, for a reason that the user can mend."""

    reason: str
    no_device: bool = False


Message = BuiltTexts | Step | Failed

_decode = msgspec.json.Decoder(Message).decode


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
    )
    label = " ".join(filter(None, (name_of(workload), case.label)))
    return BuildJob(
        place,
        dict(case.axes),
        case.transform,
        case.precision,
        stage,
        label,
        workload.timeout_s,
        **wanted,
    )


def build(wanted: BuildJob, on_step: Callable[[str], None] = lambda step: None) -> BuiltTexts:
    """Run `wanted` in a process of its own and return what it made.

    `on_step` is called with the name of each step as it begins. A step that takes longer than the
    workload's `timeout_s` is ended. Whatever happens here, a Ctrl-C included, the process and all
    that it started are gone afterwards. Where all is made but the remedies, which are tried last,
    they stay untried then.

    Raises:
        BuildError: the workload raised, or the process did not survive.
        TargetLacking: JAX finds no such device after all.
    """
    step, deadline = "start", time.monotonic() + STARTUP_TIMEOUT_S
    made: BuiltTexts | None = None

    def watch() -> None:
        if time.monotonic() > deadline:
            raise BuildError(
                f"{wanted.label}: the step {step!r} was not done after {wanted.timeout_s:g} s "
                "and was stopped. `timeout_s` of the workload says how long it may take."
            )

    with Child([sys.executable, "-m", CHILD], variables(wanted.job)) as child:
        child.send(msgspec.json.encode(wanted))
        try:
            for line in child.lines(watch):
                message = _decode(line)
                if isinstance(message, Failed):
                    kind = TargetLacking if message.no_device else BuildError
                    raise kind(f"{wanted.label}: {message.reason}")
                if isinstance(message, BuiltTexts):
                    made = message
                else:
                    step, deadline = message.name, time.monotonic() + wanted.timeout_s
                    on_step(step)
        except (BuildError, KeyboardInterrupt):
            if made is None:
                raise
        if made is not None:
            return made
        how = f"the building process ended in the step {step!r}: {child.how}"
        raise BuildError("\n  ".join([f"{wanted.label}: {how}", *child.output]))
