"""What matters in a profile, as data: builds by function and cause, and what to do about them."""

from __future__ import annotations

import linecache
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from harness.jaxhooks import jax_names
from harness.jaxhooks.events import Around, Frame, Function, LoweringCall, Promoted
from harness.profiles.causes.again import eager_remedy, is_iteration
from harness.profiles.causes.arrays import of_one_axis, padded_counts
from harness.profiles.causes.cause import Cause, Remedy, Shape
from harness.profiles.causes.kinds import BLAMELESS, KINDS
from harness.profiles.enclosing import (
    Enclosing,
    caller_of,
    imports_jax,
    is_import,
    library_line,
)
from harness.profiles.figures import BuildGroup, function_key, groups
from harness.profiles.model import Built, count_of, seconds_of
from harness.profiles.names import line_text
from harness.profiles.pieces import STAGES

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

_SLOW = 0.1
"""Share of all that was built from which a first build is a finding by itself."""

_LEAST_S = 0.05
"""Seconds that building in threads has to save."""

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

Kind = Literal[
    "unfinished",
    "uncalled",
    "ahead",
    "again",
    "first",
    "firsts",
    "shard_map",
    "large",
    "small",
    "loop",
]
"""What a finding is about.

- `unfinished`: a build that never ended; `first`: first builds of a function, `firsts`: of several.
- `uncalled`: programs of a function that were compiled ahead of time and never called; `ahead`:
  programs that one thread compiled ahead of time, one after another.
- `again`: builds of a function that had been built, for one kind of cause.
- `large`, `small`, `loop`: programs of JAX's own functions outside jit: one, small ones by who
  called them, loops and branches with functions in them. `shard_map`: of one that runs eagerly.
"""

When = Literal["", "iteration", "traced", "imported"]
"""Which small programs: in a loop over an array, while others are traced, or a library imported."""

Stage = Literal["compiled", "loaded", "lowered", "traced"]


@dataclass(frozen=True)
class Finding:
    """One thing to know about a program."""

    kind: Kind
    seconds: float
    """What its builds took, on whatever thread."""
    builds: tuple[Built, ...]
    count: int = 0
    """Builds, or small programs: the stages of one ahead of time count once."""
    loaded: int = 0
    reached: Stage = "traced"
    """The latest stage that any of them reached."""
    cause: Cause | None = None
    built: Built | None = None
    values: int = 0
    others: tuple[tuple[str, int], ...] = ()
    """Other arguments with a cause of that kind, each with its number of builds."""
    remedy: Remedy | None = None
    sites: tuple[str, ...] = ()
    """The lines that asked for them, `train.py:88`, that of most seconds first."""
    stage: str = ""
    """Of a first build: the stage that took most; of an unfinished one: where it was."""
    stage_s: float = 0.0
    """Of that stage; of programs ahead of time: what threads save at most."""
    kernel: LoweringCall | None = None
    """Of a first build that is mostly lowered: what is not JAX's own in that, and took most."""
    promoted: Promoted | None = None
    """Of a first build: the loop whose body's second trace took most, where that is much of it."""
    functions: tuple[Function, ...] = ()
    caller: str = ""
    within: str = ""
    when: When = ""
    sizes: int = 0
    """Of small programs: for how many shapes one call was built at most, where half are of such."""
    recreated: bool = False
    """Of a loop: whether each build has a function object of its own."""

    @property
    def function(self) -> Function:
        """What was built, or the first of it."""
        return self.functions[0]


def reached(builds: Sequence[Built]) -> Stage:
    """Return what was done in all of these builds, the latest stage that any of them reached."""
    if any(built.compiles for built in builds):
        return "compiled"
    if any(built.hits for built in builds):
        return "loaded"
    return "lowered" if any(built.times("lower") for built in builds) else "traced"


def _done(builds: Sequence[Built]) -> dict[str, object]:
    return {
        "seconds": seconds_of(builds),
        "builds": tuple(builds),
        "count": count_of(builds),
        "loaded": sum(reached([built]) == "loaded" for built in builds),
        "reached": reached(builds),
    }


def _sites(
    builds: Iterable[Built], site_of: Callable[[Built], str] | None = None
) -> tuple[str, ...]:
    """Return the lines that builds were asked for from, that of most seconds first.

    Of a library, where the program's own code is not on the stack.
    """
    taken: Counter[str] = Counter()
    for built in builds:
        taken[site_of(built) if site_of else built.site] += built.build_ns
    return tuple(site for site, _ in taken.most_common() if site)


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
    if threads_s(builds) >= max(slow_s, _LEAST_S):
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
    made += _outside_jit(profile, slow_s)
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
        **_done(builds),  # type: ignore[arg-type]
        remedy=Remedy("compile what is called", builds[0].function.name),
        sites=_sites(built for built in builds if built.line.kind == "compile"),
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
        **{**_done(builds), "count": sum(built.line.kind == "compile" for built in builds)},  # type: ignore[arg-type]
        stage_s=threads_s(builds),
        remedy=Remedy("compile in threads"),
        sites=_sites(built for built in builds if built.line.kind == "compile"),
        functions=_functions(builds),
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
    if remedy and threads_s(builds) >= max(seconds_of(builds) / 4, _LEAST_S):
        remedy = remedy._replace(second="compile in threads")
    return Finding(
        "again",
        **_done(builds),  # type: ignore[arg-type]
        cause=slowest.cause,
        built=slowest.built,
        values=len(slowest.values),
        others=tuple((one.cause.argument, count_of(one.builds)) for one in several[1:]),
        remedy=remedy,
        sites=_sites(builds),
        functions=(slowest.function,),
    )


def _first(group: BuildGroup) -> Finding:
    stages = {stage: sum(built.stage_ns(stage) for built in group.builds) / 1e9 for stage in STAGES}
    stage, seconds = max(stages.items(), key=lambda item: item[1])
    kernels = (one for built in group.builds for one in built.line.kernels if stage == "lower")
    kernel = max(kernels, key=lambda one: one.ns, default=None)
    remedy = Remedy("kernels in lower") if kernel and kernel.ns > 5e8 * seconds else None
    loops = (one for built in group.builds for one in built.line.promoted)
    promoted = max(loops, key=lambda one: one.ns, default=None)
    if promoted and promoted.ns >= 1e9 * max(_SLOW * group.seconds, _LEAST_S):
        remedy = remedy or Remedy("carry of one dtype", value=promoted.after)
    else:
        promoted = None
    return Finding(
        "first",
        **_done(group.builds),  # type: ignore[arg-type]
        cause=group.cause,
        built=group.built,
        stage=stage,
        stage_s=seconds,
        kernel=kernel,
        remedy=remedy,
        promoted=promoted,
        sites=_sites(group.builds),
        functions=(group.function,),
    )


def _outside_jit(profile: Recorded, slow_s: float) -> Iterator[Finding]:
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
    yield from (_loop(builds, caller, enclosing) for (caller, *_), builds in loops.items())
    for (caller, when), builds in small.items():
        yield _small(builds, caller, when, enclosing, profile)


def _shard_map(call: tuple[Frame, ...], builds: Sequence[Built]) -> Finding:
    place = line_text(call[-1].file, call[-1].line, builds[0].process.started.cwd)
    return Finding(
        "shard_map",
        seconds_of(builds),
        tuple(builds),
        count=sum(built.times("compile") for built in builds),
        functions=_functions(builds),
        remedy=Remedy("jit shard_map"),
        sites=(place,),
    )


def _functions(builds: Iterable[Built]) -> tuple[Function, ...]:
    by_name = {built.function.name: built.function for built in builds}
    counts = Counter(built.function.name for built in builds)
    return tuple(by_name[name] for name, _ in counts.most_common())


def _large(builds: Sequence[Built], caller: str, site: str, enclosing: Enclosing) -> Finding:
    remedy = eager_remedy(builds[0])
    if caller:
        remedy = _library_remedy(builds, enclosing)
    elif remedy and remedy.kind == "inside jit" and (function := enclosing.to_jit(builds[0])):
        remedy = Remedy("jit functions", functions=(function,))
    return Finding(
        "large",
        **_done(builds),  # type: ignore[arg-type]
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
    if count < (1 if when == "iteration" else fewest):
        remedy = None
    sizes = _most_sizes(builds, profile)
    if not caller and not when and remedy and (mapped := enclosing.mapped(builds)):
        remedy, sizes = Remedy("jit tree map", mapped.name), 0
    elif sizes and not caller and not when:  # jitted, it would be built for each size as well
        remedy = _of_results(builds)
    return Finding(
        "small",
        **{**_done(builds), "count": count},  # type: ignore[arg-type]
        functions=_functions(builds),
        caller=caller,
        when=when,
        sizes=sizes,
        remedy=remedy,
        sites=_sites(builds, enclosing.site_of if caller else None),
    )


def _small_remedy(
    builds: Sequence[Built], caller: str, when: When, enclosing: Enclosing
) -> Remedy | None:
    if when:
        kinds = {"imported": "persistent cache", "iteration": "numpy to iterate"}
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


def _loop(builds: Sequence[Built], caller: str, enclosing: Enclosing) -> Finding:
    objects = {built.line.object for built in builds}
    again = len({built.work for built in builds}) < len(builds)
    remedy = _library_remedy(builds, enclosing) if caller else None
    if not caller and again:
        remedy = Remedy("jit around loop")
    return Finding(
        "loop",
        **{**_done(builds), "count": len(builds)},  # type: ignore[arg-type]
        functions=(builds[0].function,),
        built=builds[0],
        caller=caller,
        within=library_line(builds[0], caller) if caller else "",
        recreated=len(objects) == len(builds) > 1,
        remedy=remedy if len(builds) > 1 else None,
        sites=_sites(builds, enclosing.site_of if caller else None),
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
