"""What matters in a profile, in words: builds by function and cause, and what to jit."""

from __future__ import annotations

import linecache
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.profiles.answer.enclosing import Enclosing, caller_of, imports_jax, is_import
from harness.profiles.causes import shape
from harness.profiles.causes.registry import BLAMELESS, KINDS
from harness.profiles.causes.words import (
    DIFFERENTIATED,
    INSIDE_JIT,
    OF_ITERATION,
    OF_LOOPS,
    eager_remedy,
    is_iteration,
)
from harness.profiles.figures import BuildGroup, function_key, groups
from harness.profiles.model import Built, count_of, seconds_of
from harness.profiles.names import Names, line_text
from harness.profiles.pieces import STAGES
from harness.records.units import counted, seconds_text, some, times_text
from harness.watch import jax_names

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded
    from harness.watch.events import Frame

_DEAR = 0.1
"""Share of all that was built from which a first build is told of by itself."""

_LARGE_S = 0.1
"""Seconds from which a program outside jit is no small one."""

_FEWEST = 5  # programs that are worth a change: to make and split a random key are four

_SIZES = 5
"""Sizes of one axis at one call from which that is a loop over sizes, and no tree of arrays."""

_SIZED = "Keep the sizes few (pad them), or compute there with NumPy: jit builds for each size too."
_SIZE_GIVEN = "Give {} size= and fill_value=, so that results have one size, or use NumPy's."
_MASKED = "Take jnp.where(mask, x, 0) in place of x[mask], or NumPy: its size is that of x."

_JIT_SHARD_MAP = (
    "Jit the shard_map, jax.jit(jax.shard_map(...)): to jit what is in it is not enough."
)

_OWN = "Make arrays with NumPy, or put the operations into one jitted function."
_JIT = "Jit {names}, {what}, if {they} with arrays alone"
_FIRST = "the first to need {:,} of them"
"""What others need as well is built once, in the first of them."""
_CALL = "the call, if the library allows that, by its own jit where it has one"
_KEEP = (
    "let the persistent cache keep them for the next run "
    "(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0)"
)

_SIZED_CALL = re.compile(
    r"\b(jnp|jax\.numpy)\.(unique\w*|(flat)?nonzero|argwhere|where(?=\([^,()]*\))|(union|intersect)1d"
    r"|set(diff|xor)1d|compress|extract)\("
)
"""Functions of which the result's size depends on values."""
_MASK = re.compile(r"\w\[[^\]\[]*(<|>|[=!]=|\bmask\w*)[^\]]*\]")

_ALIKE = re.compile(r"\. (The same for .*?\.)(?: Also:|$)")

_MANY = 3
"""Programs for other shapes of one operation at one call, from which its shapes are told of."""


@dataclass(frozen=True)
class Finding:
    """One thing to know about a program, in words."""

    seconds: float
    """What its builds took, on whatever thread."""
    text: str
    remedy: str = ""
    place: str = ""
    """The line that did it."""


def verb_of(builds: Sequence[Built]) -> str:
    """Return what was done in all of these builds, the latest stage that any of them reached."""
    reached = {
        "compiled": any(built.compiles for built in builds),
        "loaded": any(built.hits for built in builds),
        "lowered": any(built.times("lower") for built in builds),
        "traced": True,
    }
    return next(verb for verb, done in reached.items() if done)


def _times(builds: Sequence[Built], more: str = "") -> str:
    """Return what was done how often: `compiled 3 times more`, `compiled once and loaded twice`."""
    count = count_of(builds)
    loaded = sum(verb_of([built]) == "loaded" for built in builds)
    if verb_of(builds) != "compiled" or not loaded:
        return f"{verb_of(builds)} {times_text(count)}{more}"
    return f"compiled {times_text(count - loaded)} and loaded {times_text(loaded)}{more}"


def _sites(builds: Sequence[Built], site_of: Callable[[Built], str] | None = None) -> list[str]:
    """Return the lines that builds were asked for from, that of most seconds first.

    Of a library, where the program's own code is not on the stack.
    """
    taken: Counter[str] = Counter()
    for built in builds:
        taken[site_of(built) if site_of else built.site] += built.build_ns
    return [site for site, _ in taken.most_common() if site]


def _places(sites: Sequence[str]) -> str:
    """Return the first of these lines, and how many more there are."""
    return f"{sites[0]} and {len(sites) - 1} more" if len(sites) > 1 else "".join(sites)


def findings(profile: Recorded) -> list[Finding]:
    """Return what is worth saying of a profile's builds, the dearest first.

    Their seconds add up to those of all builds.
    """
    found = []
    names = Names(built.function for built in (*profile.builds, *profile.unfinished))
    for built in profile.unfinished:
        line = built.line
        where = f"in its {line.spans[-1].stage}" if line.spans else "while it is called"
        text = f"{names.of(built.function)} never ended: the log stops {where}"
        found.append(Finding((line.end_ns - line.begin_ns) / 1e9, text, "", built.site))
    dear = _DEAR * seconds_of(profile.builds)
    again: dict[tuple[object, ...], list[BuildGroup]] = {}
    small: list[BuildGroup] = []
    for group in groups(profile, [built for built in profile.builds if not built.eager]):
        if group.cause.kind not in BLAMELESS:
            cause = group.cause
            apart = (cause.argument, cause.defined) if KINDS[cause.kind].apart else ()
            key = (function_key(group.function), cause.kind, bool(cause.remedy), *apart)
            again.setdefault(key, []).append(group)
        elif group.seconds >= dear:
            found.append(_first(group, names))
        else:
            small.append(group)
    found += [_again(several, names) for several in again.values()]
    if len(small) == 1:
        found.append(_first(small[0], names))
    elif small:
        builds = [built for group in small for built in group.builds]
        called = list(dict.fromkeys(names.of(group.function) for group in small))
        first = ", ".join(called[:3]) + "…" * (len(called) > 3)
        count = sum(count_of(group.builds) for group in small)
        text = f"{counted(count, 'first build')} ({first})"
        found.append(Finding(seconds_of(builds), text))
    found += _eager_findings(profile, dear)
    return sorted(found, key=lambda finding: -finding.seconds)


def _again(several: Sequence[BuildGroup], names: Names) -> Finding:
    """Return what to say of builds of one function with one kind of cause, by argument."""
    builds = [built for group in several for built in group.builds]
    dearest = several[0]
    name, times = names.of(dearest.function), times_text(count_of(builds))
    text = f"{name} was {_times(builds, ' more')}: {_why(dearest)}"
    if again := KINDS[dearest.cause.kind].again:
        text = again.format(name=name, after=dearest.cause.after, times=times)
    if others := several[1:]:
        arguments = some([f"`{group.cause.argument}`" for group in others], 2)
        count = sum(count_of(group.builds) for group in others)
        text += f"; and {times_text(count)} for {arguments}"
    remedy = dearest.cause.remedy
    if remedy and (alike := _ALIKE.search(dearest.cause.sentence)):
        remedy = f"{remedy} {alike[1]}"
    if remedy and (remaining := KINDS[dearest.cause.kind].remaining):
        remedy = f"{remedy} {remaining(dearest.values)}".rstrip()
    return Finding(seconds_of(builds), text, remedy, _places(_sites(builds)))


def _why(group: BuildGroup) -> str:
    cause, n = group.cause, len(group.values)
    what = f"`{cause.argument}`" if cause.argument else "its arguments"
    several, clause = KINDS[cause.kind].several, _clause(cause.sentence)
    if several and len(group.builds) > 1 and (n > 1 or "{n}" not in several) and not cause.defined:
        return several.format(what=what, n=n, clause=clause)
    return clause or f"{cause.kind} of {what}"


def _clause(sentence: str) -> str:
    """Return the first thing that a sentence says, as it stands after a colon."""
    sentence = re.sub(r"^`[^`]*` had been built for these arguments[;,] (?:but )?", "", sentence)
    sentence = re.split(r"\. (?:Also:|The same for )", sentence, maxsplit=1)[0]
    if sentence.partition(" ")[0].istitle():
        sentence = sentence[0].lower() + sentence[1:]
    return sentence.rstrip(".")


def _first(group: BuildGroup, names: Names) -> Finding:
    stages = {stage: sum(built.stage_ns(stage) for built in group.builds) / 1e9 for stage in STAGES}
    stage, seconds = max(stages.items(), key=lambda item: item[1])
    count = count_of(group.builds)
    how = "First build" if count == 1 else f"{count:,} first builds"
    if group.cause.kind == "ahead of time":
        how = counted(count, "build") + " ahead of time"
    name = names.of(group.function)
    text = f"{how} of {name}: {seconds_text(seconds)} of it is {stage}"
    return Finding(group.seconds, text, "", _places(_sites(group.builds)))


def _eager_findings(profile: Recorded, dear: float) -> Iterator[Finding]:
    """Yield what is worth saying of those builds that are of JAX's own functions.

    One that took `dear` seconds is a finding of its own, and so is a loop or branch (`scan`,
    `while`, `cond`) with functions in it. Small programs are one finding for each caller: the
    program itself, or a library; and for what has another remedy.
    """
    found: dict[tuple[str, str, str], list[Built]] = {}
    enclosing = Enclosing(profile.builds)
    sharded = _shard_maps(profile.builds)
    for call, several in sharded.items():
        count = sum(built.times("compile") for built in several)
        text = f"{counted(count, 'small program')} of a shard_map outside jit, anew at every call"
        frame = call[-1]
        place = line_text(frame.file, frame.line, several[0].process.started.cwd)
        yield Finding(seconds_of(several), text, _JIT_SHARD_MAP, place)
    usual = _usual_ns(profile.builds)
    within = {id(built) for several in sharded.values() for built in several}
    for built in profile.builds:
        if not built.eager or id(built) in within:
            continue
        caller, through, name = caller_of(built), built.function.through, ""
        if caller and is_import(built):
            through, name = "", _IMPORTED
        elif through:
            name = built.function.name
        elif is_iteration(built):
            name, caller = _ITERATION, ""
        elif built.line.parent:
            name = _TRACED
        elif built.build_ns >= max(1e9 * max(dear, _LARGE_S), usual.get(built.line.function, 0)):
            yield _large(built, caller, enclosing)
            continue
        found.setdefault((caller, through, name), []).append(built)
    for (caller, through, name), several in found.items():
        if through:
            yield _loop(several, caller, enclosing)
        else:
            one = _small(several, caller, name, enclosing)
            if sizes := _of_sizes(several, profile):
                plain = not caller and not name  # jitted, it would be built for each size as well
                one = replace(one, remedy=sizes + (_of_results(several) if plain else one.remedy))
            yield one


_ITERATION, _TRACED, _IMPORTED = "iteration", " while others are traced", " while it is imported"
"""Small programs that are told apart: by what loops over arrays, and by when they run."""


def _large(built: Built, caller: str, enclosing: Enclosing) -> Finding:
    by = f" by {caller}" if caller else ""
    text = f"JAX's `{built.function.name}` was {verb_of([built])} outside jit{by}"
    remedy, site = eager_remedy(built), built.site
    if caller:
        remedy, site = _library_remedy([built], enclosing), enclosing.site_of(built)
    elif remedy == INSIDE_JIT and (name := enclosing.name_of(built)):
        remedy = f"{_jit_text([name], 'which it is in')}."
    return Finding(seconds_of([built]), text, remedy, site)


def _small(builds: Sequence[Built], caller: str, kind: str, enclosing: Enclosing) -> Finding:
    count = sum(built.times("compile") for built in builds)
    names = Counter(built.function.name for built in builds)
    most = ", ".join(f"`{name}`" for name, _ in names.most_common(3))
    most += "…" * (len(names) > 3)
    when = "" if kind == _ITERATION else kind
    by = (f" by {caller}" if caller else "") + when
    what = f"{counted(count, 'small program')} outside jit{by}"
    if not count:
        what = f"functions {verb_of(builds)} for others{by}"
    text = f"{what}: JAX's own {most}"
    sites = _sites(builds, enclosing.site_of if caller else None)
    place, several = "".join(sites[:1]), len(sites) > 1
    if place and (caller or several):
        place = f"{'most ' if several else ''}{'called ' if caller else ''}at {place}"
    if kind == _IMPORTED:
        remedy = f"{_KEEP[0].upper()}{_KEEP[1:]}."
    elif kind:
        remedy = OF_ITERATION if kind == _ITERATION else ""
    elif caller:
        remedy = _library_remedy(builds, enclosing)
    else:
        inside, called = enclosing.of_most(builds)
        derived = seconds_of([built for built in builds if built.line.derived])
        remedy = _OWN if derived < seconds_of(builds) / 2 else DIFFERENTIATED
        if called:
            remedy = f"{_jit_text(called, _FIRST.format(inside))}; make other arrays with NumPy."
    least = 1 if kind == _ITERATION else _FEWEST if remedy == _OWN else 2
    return Finding(seconds_of(builds), text, remedy if count >= least else "", place)


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
    found: dict[tuple[Frame, ...], list[Built]] = {}
    for built in eager:
        for call in calls:
            if built.frames[: len(call)] == call:
                found.setdefault(call, []).append(built)

    def objects(several: Sequence[Built]) -> int:
        return len({one.line.object for one in several if one.function.qualname == name})

    return {call: several for call, several in found.items() if objects(several) > 1}


def _of_sizes(builds: Sequence[Built], profile: Recorded) -> str:
    """Return that half of the programs are of calls that came with many shapes; "" if not.

    One call may need a program for many shapes, as of zeros for all parameters: it counts once,
    where these are no sizes of one axis.
    """
    turns: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    shapes: defaultdict[tuple[str, int], list[tuple[int, ...]]] = defaultdict(list)
    turn, before = 0, None
    for built in sorted(profile.builds, key=lambda one: (one.process.name, one.line.begin_ns)):
        path = [frame for frame in built.frames if frame.origin == "program"]
        turn, before = turn + (path != before), path
        cause = profile.cause_of(built)
        if cause.kind == shape.CAUSE.name:
            key = built.function.name, built.line.stack
            turns[key].add(turn)
            shapes[key].append(shape.sizes(cause.after))
    most = {key: max(len(turns[key]), shape.of_one_axis(shapes[key])) for key in turns}
    kept = {(built.function.name, built.line.stack) for built in builds}
    again = [key for key in kept & turns.keys() if len(turns[key]) >= _MANY or most[key] >= _SIZES]
    if not again or 2 * sum(len(shapes[key]) for key in again) < len(builds):
        return ""
    most_of_all = max(most[key] for key in again)
    return f"Built again for other shapes, up to {most_of_all} at one call. "


def _of_results(builds: Sequence[Built]) -> str:
    """Return what to do about sizes: those of results that depend on values have a remedy apart."""
    lines = {
        linecache.getline(built.call_site.file, built.call_site.line)
        for built in builds
        if built.call_site.file
    }
    for line in lines:
        if (named := _SIZED_CALL.search(line)) and "size=" not in line:
            return _SIZE_GIVEN.format(f"`{named[0].strip('(')}`")
        if _MASK.search(line):
            return _MASKED
    return _SIZED


def _jit_text(names: Sequence[str], what: str) -> str:
    *others, last = names
    told = f"{', '.join(others)} and {last}" if others else last
    they = "they compute" if others else "it computes"
    return _JIT.format(names=told, what=what, they=they)


def _loop(builds: Sequence[Built], caller: str, enclosing: Enclosing) -> Finding:
    function = builds[0].function
    given = list(dict.fromkeys(_given(function.through, builds[0].process.started.cwd)))
    of = f" of {some(given, 1)}" if given else ""
    by = f" by {caller}" if caller else ""
    done = f"JAX's `{function.name}`{of} was {verb_of(builds)} outside jit{by}"
    objects = {built.line.object for built in builds}
    if "loaded" in (times := _times(builds)) and "compiled" in times:
        done = f"JAX's `{function.name}`{of} was {times} outside jit{by}"
    elif len(builds) > 1:
        done += f" {times_text(len(builds))}"
    if len(builds) > 1 and len(objects) == len(builds):
        done += ": each time with a new function object"
    again = len({built.work for built in builds}) < len(builds)
    remedy = _library_remedy(builds, enclosing) if caller else OF_LOOPS * again
    sites = _sites(builds, enclosing.site_of if caller else None)
    return Finding(seconds_of(builds), done, remedy if len(builds) > 1 else "", _places(sites))


def _given(through: str, folder: str) -> Iterator[str]:
    """Yield the functions that a loop was given; JAX's own say nothing and are left out."""
    for given in through.split(", "):
        name, _, place = given.partition(" at ")
        file, _, line = place.rpartition(":")
        if file and not re.search(r"[/\\]jax[/\\]_src[/\\]", file):
            yield f"`{name}` ({line_text(file, int(line) if line.isdigit() else 0, folder)})"


def _library_remedy(builds: Sequence[Built], enclosing: Enclosing) -> str:
    if not any(map(imports_jax, builds)):
        return "It knows no JAX: give it NumPy arrays, np.asarray(array)."
    inside, called = enclosing.of_most(builds)
    what = f"{called[0]}, {_FIRST.format(inside)}, or {_CALL}" if called[:1] else _CALL
    unwritten = any(one.outcome == "unwritten" for built in builds for one in built.line.requests)
    return f"Jit {what}, or {_KEEP}." if unwritten else f"Jit {what}."
