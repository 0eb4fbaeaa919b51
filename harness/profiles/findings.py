"""What matters in a profile, as data: builds by function and cause, and what to do about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.jaxhooks.events import LoweringCall
from harness.profiles.causes.arrays import padded_counts
from harness.profiles.causes.cause import Remedy
from harness.profiles.causes.kinds import BLAMELESS, KINDS
from harness.profiles.figures import BuildGroup, function_key, groups
from harness.profiles.finding import LEAST_S, Finding, done, functions_of, promoted_in, sites_of
from harness.profiles.model import Built, count_of, seconds_of
from harness.profiles.outside_jit import outside_jit
from harness.profiles.pieces import STAGES

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

_SLOW = 0.1
"""Share of all that was built from which a first build is a finding by itself."""


def findings(profile: Recorded) -> list[Finding]:
    """Return what is worth knowing of a profile's builds, the slowest first.

    Their seconds add up to those of all builds.
    """
    return profile.once("findings", lambda: _findings(profile))


def _findings(profile: Recorded) -> list[Finding]:
    made = list(map(_unfinished, profile.unfinished))
    slow_s = _SLOW * seconds_of(profile.builds)
    again: dict[tuple[object, ...], list[BuildGroup]] = {}
    small: list[BuildGroup] = []
    ahead: list[BuildGroup] = []
    own = [built for built in profile.builds if not built.eager]
    unused = _uncalled(own)
    made += map(_never_called, unused.values())
    left_out = {id(built) for builds in unused.values() for built in builds}
    for group in groups(profile, [built for built in own if id(built) not in left_out]):
        if group.cause.kind not in BLAMELESS:
            cause = group.cause
            apart = (cause.argument, cause.recreated) if KINDS[cause.kind].apart else ()
            key = (function_key(group.function), cause.kind, bool(cause.remedy), *apart)
            again.setdefault(key, []).append(group)
        elif all(built.line.kind != "call" for built in group.builds):
            ahead.append(group)
        else:
            small.append(group)
    builds = tuple(built for group in ahead for built in group.builds)
    if threads_s(builds) >= max(slow_s, LEAST_S):
        made.append(_ahead(builds))
    else:
        small += ahead
    made += (_first(group) for group in small if group.seconds >= slow_s)
    small = [group for group in small if group.seconds < slow_s]
    made += map(_again, again.values())
    if len(small) == 1:
        made.append(_first(small[0]))
    elif small:
        builds = tuple(built for group in small for built in group.builds)
        count = sum(count_of(group.builds) for group in small)
        functions = tuple({id(one.function): one.function for one in small}.values())
        made.append(Finding("firsts", seconds_of(builds), builds, count=count, functions=functions))
    made += outside_jit(profile, slow_s)
    made.sort(key=lambda finding: -finding.seconds)
    if made and made[0].kind == "first" and made[0].stage in ("trace", "lower", "compile"):
        inside = Remedy("look inside", value=made[0].function.name)
        made[0] = replace(made[0], remedy=made[0].remedy or inside)
    return made


def _uncalled(builds: Iterable[Built]) -> dict[object, list[Built]]:
    """Return, by function, the builds ahead of time of programs that were never called."""
    programs: dict[object, list[Built]] = {}
    for built in builds:
        line = built.line
        key = built.process, line.function, line.object, line.wrapper, line.arguments
        programs.setdefault(key, []).append(built)
    by_function: dict[object, list[Built]] = {}
    for several in programs.values():
        ends = [built for built in several if built.line.kind in ("compile", "call")]
        if ends and all(built.line.id in built.process.uncalled for built in ends):
            by_function.setdefault(function_key(several[0].function), []).extend(several)
    return by_function


def _never_called(builds: Sequence[Built]) -> Finding:
    return Finding(
        "uncalled",
        **done(builds),  # type: ignore[arg-type]
        remedy=Remedy("compile what is called", builds[0].function.name),
        sites=sites_of(built for built in builds if built.line.kind == "compile"),
        functions=(builds[0].function,),
    )


def threads_s(builds: Iterable[Built]) -> float:
    """Return what is saved at most where what each thread built ahead of time is built in several.

    XLA compiles without Python's lock, and so do kernels that are compiled while JAX lowers. Trace
    and lower hold it.
    """
    took: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for built in builds:
        line = built.line
        if line.kind == "compile":
            took[built.process.name, line.thread].append(built.build_ns)
        elif line.kind == "lower" and line.kernels:
            took[built.process.name, line.thread].append(sum(one.ns for one in line.kernels))
    return sum(sum(each) - max(each) for each in took.values()) / 1e9


def _ahead(builds: Sequence[Built]) -> Finding:
    return Finding(
        "ahead",
        **{**done(builds), "count": sum(built.line.kind == "compile" for built in builds)},  # type: ignore[arg-type]
        stage_s=threads_s(builds),
        remedy=Remedy("compile in threads"),
        sites=sites_of(built for built in builds if built.line.kind == "compile"),
        functions=functions_of(builds),
    )


def _unfinished(built: Built) -> Finding:
    line = built.line
    return Finding(
        "unfinished",
        (line.end_ns - line.begin_ns) / 1e9,
        (built,),
        stage=line.spans[-1].stage if line.spans else "",
        functions=(built.function,),
        sites=(built.site,) if built.site else (),
    )


def _again(several: Sequence[BuildGroup]) -> Finding:
    """Return builds of one function with one kind of cause, by argument."""
    builds = [built for group in several for built in group.builds]
    slowest = several[0]
    remedy = slowest.cause.remedy
    if remedy and remedy.kind == "pad":
        ranks = {len(shape) for shape in slowest.shapes}
        remedy = remedy._replace(
            counts=padded_counts(slowest.shapes), value="[None]" * (len(ranks) > 1)
        )
    if remedy and threads_s(builds) >= max(seconds_of(builds) / 4, LEAST_S):
        remedy = remedy._replace(second="compile in threads")
    calls = [one for built in builds for one in built.line.kernels if _compares(one)]
    took = sum(one.ns for one in calls)
    compares = took >= 1e9 * max(_SLOW * seconds_of(builds), LEAST_S)
    return Finding(
        "again",
        **done(builds),  # type: ignore[arg-type]
        kernel=calls[0]._replace(ns=took) if compares else None,
        cause=slowest.cause,
        built=slowest.built,
        values=len(slowest.values),
        others=tuple((one.cause.argument, count_of(one.builds)) for one in several[1:]),
        remedy=remedy,
        sites=sites_of(builds),
        functions=(slowest.function,),
    )


def _compares(call: LoweringCall) -> bool:
    return call.function.endswith("__eq__")


def _first(group: BuildGroup) -> Finding:
    stages = {stage: sum(built.stage_ns(stage) for built in group.builds) / 1e9 for stage in STAGES}
    stage, seconds = max(stages.items(), key=lambda item: item[1])
    calls = [one for built in group.builds for one in built.line.kernels if not _compares(one)]
    kernel = max(calls, key=lambda one: one.ns, default=None) if stage == "lower" else None
    remedy = Remedy("kernels in lower") if kernel and kernel.ns > 5e8 * seconds else None
    promoted = promoted_in(group.builds, max(_SLOW * group.seconds, LEAST_S))
    if promoted:
        remedy = remedy or Remedy("carry of one dtype", value=promoted.after)
    return Finding(
        "first",
        **done(group.builds),  # type: ignore[arg-type]
        cause=group.cause,
        built=group.built,
        stage=stage,
        stage_s=seconds,
        kernel=kernel,
        remedy=remedy,
        promoted=promoted,
        sites=sites_of(group.builds),
        functions=(group.function,),
    )
