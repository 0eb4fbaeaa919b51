"""What is built of JAX's own functions outside jit: loops, shard_maps, large and small programs."""

from __future__ import annotations

import linecache
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.jaxhooks import jax_names
from harness.jaxhooks.events import Around, Frame
from harness.profiles.causes.again import eager_remedy, is_iteration
from harness.profiles.causes.arrays import of_one_axis
from harness.profiles.causes.cause import Remedy, Shape
from harness.profiles.enclosing import Enclosing, caller_of, imports_jax, is_import, library_line
from harness.profiles.finding import (
    LEAST_S,
    Finding,
    When,
    done,
    functions_of,
    promoted_in,
    sites_of,
)
from harness.profiles.model import Built, seconds_of
from harness.profiles.names import line_text

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

_LARGE_S = 0.1
"""Seconds from which a program outside jit is no small one."""

_FEWEST = 5  # programs that are worth a change: to make and split a random key are four

_SIZES = 5
"""Sizes of one axis at one call from which that is a loop over sizes, and no tree of arrays."""

_SIZED_CALL = re.compile(
    r"\b(jnp|jax\.numpy)\.(unique\w*|(flat)?nonzero|argwhere|where(?=\([^,()]*\))|(union|intersect)1d"
    r"|set(diff|xor)1d|compress|extract)\("
)
"""Functions of which the result's size depends on values."""
_MASK = re.compile(r"\w\[[^\]\[]*(<|>|[=!]=|\bmask\w*)[^\]]*\]")

_MANY = 3
"""Programs for other shapes of one operation at one call, from which its shapes are counted."""


def outside_jit(profile: Recorded, slow_s: float) -> Iterator[Finding]:
    """Yield the builds that are of JAX's own functions.

    Those that took `slow_s` are a finding for each function and line, and so is a loop or branch
    (`scan`, `while`, `cond`) with functions in it. Small programs are one finding for each caller:
    the program itself, or a library; and for what has another remedy.
    """
    small: dict[tuple[str, When], list[Built]] = {}
    large: dict[tuple[str, str, str], list[Built]] = {}
    loops: dict[tuple[str, tuple[Around, ...], str], list[Built]] = {}
    enclosing = Enclosing(profile.builds)
    sharded = _shard_maps(profile.builds)
    yield from (_shard_map(call, builds) for call, builds in sharded.items())
    usual = _usual_ns(profile.builds)
    within = {id(built) for builds in sharded.values() for built in builds}
    for built in profile.builds:
        if not built.eager or id(built) in within:
            continue
        caller, around = caller_of(built), built.function.around
        if caller and is_import(built):
            small.setdefault((caller, "imported"), []).append(built)
        elif built.settings and built.settings.context.get("jax_disable_jit") == "True":
            small.setdefault(("", "disabled"), []).append(built)
        elif around:
            loops.setdefault((caller, around, built.function.name), []).append(built)
        elif is_iteration(built) and not caller:
            small.setdefault(("", "iteration"), []).append(built)
        elif built.line.parent:
            small.setdefault((caller, "traced"), []).append(built)
        elif built.build_ns >= max(1e9 * max(slow_s, _LARGE_S), usual.get(built.line.function, 0)):
            site = enclosing.site_of(built) if caller else built.site
            large.setdefault((caller, built.function.name, site), []).append(built)
        else:
            small.setdefault((caller, ""), []).append(built)
    for (caller, _, site), builds in large.items():
        yield _large(builds, caller, site, enclosing)
    for (caller, *_), builds in loops.items():
        yield _loop(builds, caller, enclosing, profile)
    for (caller, when), builds in small.items():
        yield _small(builds, caller, when, enclosing, profile)


def _shard_map(call: tuple[Frame, ...], builds: Sequence[Built]) -> Finding:
    place = line_text(call[-1].file, call[-1].line, builds[0].process.started.cwd)
    return Finding(
        "shard_map",
        seconds_of(builds),
        tuple(builds),
        count=sum(built.times("compile") for built in builds),
        functions=functions_of(builds),
        remedy=Remedy("jit shard_map"),
        sites=(place,),
    )


def _large(builds: Sequence[Built], caller: str, site: str, enclosing: Enclosing) -> Finding:
    remedy = eager_remedy(builds[0])
    if caller:
        remedy = _library_remedy(builds, enclosing)
    elif remedy and remedy.kind == "inside jit" and (function := enclosing.to_jit(builds[0])):
        remedy = Remedy("jit functions", functions=(function,))
    return Finding(
        "large",
        **done(builds),  # type: ignore[arg-type]
        functions=(builds[0].function,),
        caller=caller,
        remedy=remedy,
        sites=(site,) if site else (),
    )


def _small(
    builds: Sequence[Built], caller: str, when: When, enclosing: Enclosing, profile: Recorded
) -> Finding:
    count = sum(built.times("compile") for built in builds)
    remedy = _small_remedy(builds, caller, when, enclosing)
    fewest = _FEWEST if remedy and remedy.kind == "numpy or one jit" else 2
    if count < (1 if when in ("iteration", "disabled") else fewest):
        remedy = None
    sizes = _most_sizes(builds, profile)
    if not caller and not when and remedy and (mapped := enclosing.mapped(builds)):
        remedy, sizes = Remedy("jit tree map", mapped.name), 0
    elif sizes and not caller and not when:  # jitted, it would be built for each size as well
        remedy = _of_results(builds)
    return Finding(
        "small",
        **{**done(builds), "count": count},  # type: ignore[arg-type]
        functions=functions_of(builds),
        caller=caller,
        when=when,
        sizes=sizes,
        remedy=remedy,
        sites=sites_of(builds, enclosing.site_of if caller else None),
    )


def _small_remedy(
    builds: Sequence[Built], caller: str, when: When, enclosing: Enclosing
) -> Remedy | None:
    if when:
        kinds = {
            "imported": "persistent cache",
            "iteration": "numpy to iterate",
            "disabled": "jit on",
        }
        return Remedy(kinds[when]) if when in kinds else None
    if caller:
        return _library_remedy(builds, enclosing)
    inside, functions = enclosing.of_most(builds)
    if functions:
        return Remedy("jit functions", counts=(inside,), functions=functions)
    derived = seconds_of([built for built in builds if built.line.derived])
    own = derived < seconds_of(builds) / 2
    return Remedy("numpy or one jit" if own else "jit differentiated")


def _usual_ns(builds: Sequence[Built]) -> dict[int, float]:
    """Return from what a build is large beside others of its function, where there are some."""
    taken: defaultdict[int, list[int]] = defaultdict(list)
    for built in builds:
        if built.eager:
            taken[built.line.function].append(built.build_ns)
    return {n: 3 * statistics.median(all_) for n, all_ in taken.items() if len(all_) > _MANY}


def _shard_maps(builds: Sequence[Built]) -> dict[tuple[Frame, ...], list[Built]]:
    """Return what each shard_map outside jit was built of, by the stack of its call."""
    name, file = jax_names.EAGER_SHARD_MAP
    eager = [built for built in builds if built.eager and not caller_of(built)]
    own = {
        built.frames
        for built in eager
        if built.function.qualname == name
        and built.function.file.replace("\\", "/").endswith(file)
        and built.frames
    }
    calls = [one for one in own if not any(one[:n] in own for n in range(1, len(one)))]
    maps: dict[tuple[Frame, ...], list[Built]] = {}
    for built in eager:
        for call in calls:
            if built.frames[: len(call)] == call:
                maps.setdefault(call, []).append(built)

    def objects(several: Sequence[Built]) -> int:
        return len({one.line.object for one in several if one.function.qualname == name})

    return {call: several for call, several in maps.items() if objects(several) > 1}


def _most_sizes(builds: Sequence[Built], profile: Recorded) -> int:
    """Return for how many shapes one call was built at most, if half of the programs are of such.

    0 if not. One call may need a program for many shapes, as of zeros for all parameters: it counts
    once, where these are no sizes of one axis.
    """
    turns: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    shapes: defaultdict[tuple[str, int], list[Shape]] = defaultdict(list)
    turn, before = 0, None
    for built in sorted(profile.builds, key=lambda one: (one.process.name, one.line.begin_ns)):
        path = [frame for frame in built.frames if frame.origin == "program"]
        turn, before = turn + (path != before), path
        cause = profile.cause_of(built)
        if cause.kind == "shape":
            key = built.function.name, built.line.stack
            turns[key].add(turn)
            shapes[key].append(cause.sizes[-1] if cause.sizes else ())
    most = {key: max(len(turns[key]), of_one_axis(shapes[key])) for key in turns}
    mine = {(built.function.name, built.line.stack) for built in builds}
    again = [key for key in mine & turns.keys() if len(turns[key]) >= _MANY or most[key] >= _SIZES]
    if not again or 2 * sum(len(shapes[key]) for key in again) < len(builds):
        return 0
    return max(most[key] for key in again)


def _of_results(builds: Sequence[Built]) -> Remedy:
    """Return what to do about sizes: those of results that depend on values have another remedy."""
    lines = {
        linecache.getline(built.call_site.file, built.call_site.line)
        for built in builds
        if built.call_site.file
    }
    for line in lines:
        if (call := _SIZED_CALL.search(line)) and "size=" not in line:
            return Remedy("size", value=call[0].strip("("))
        if _MASK.search(line):
            return Remedy("where")
    return Remedy("few sizes")


def _loop(builds: Sequence[Built], caller: str, enclosing: Enclosing, profile: Recorded) -> Finding:
    again = len({built.work for built in builds}) < len(builds)
    remedy = _library_remedy(builds, enclosing) if caller else None
    if not caller and again:
        remedy = Remedy("jit around loop")
    causes = [cause for one in builds if (cause := profile.cause_of(one)).kind != "first"]
    sized = bool(causes) and all(one.kind == "shape" or one.argument == "length" for one in causes)
    if sized and not caller:
        remedy = Remedy("few sizes")
    promoted = promoted_in(builds, LEAST_S)
    if len(builds) == 1:
        remedy = Remedy("carry of one dtype", value=promoted.after) if promoted else None
    return Finding(
        "loop",
        **{**done(builds), "count": len(builds)},  # type: ignore[arg-type]
        functions=(builds[0].function,),
        built=builds[0],
        caller=caller,
        within=library_line(builds[0], caller) if caller else "",
        sizes=len(causes) * (sized and not caller),
        recreated=bool(causes) and all(one.kind == "new function object" for one in causes),
        promoted=promoted,
        remedy=remedy,
        sites=sites_of(builds, enclosing.site_of if caller else None),
    )


def _library_remedy(builds: Sequence[Built], enclosing: Enclosing) -> Remedy:
    if not any(map(imports_jax, builds)):
        return Remedy("numpy to library")
    inside, functions = enclosing.of_most(builds)
    unwritten = any(one.outcome == "unwritten" for built in builds for one in built.line.requests)
    return Remedy(
        "jit library call",
        counts=(inside,) if functions else (),
        functions=functions[:1],
        second="persistent cache" if unwritten else "",
    )
