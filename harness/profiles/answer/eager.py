"""JAX's own functions that run outside jit, in words: who called them, and from where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from harness.profiles import texts
from harness.profiles.answer.finding import Finding, places, seconds_of, times_text, verb_of
from harness.profiles.answer.grouping import site_text
from harness.profiles.model import Built

_PASSING = ("numpy",)
"""Libraries that hand on what somebody asked them for: `np.sum(x)` of an array of JAX's."""

_OWN = "Make arrays with NumPy, or put the operations into one jitted function."
_CALL = "Jit the call, if the library allows that"
_KEEP = (
    "let the persistent cache keep them for the next run "
    "(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0)"
)
_LOOPS = "Jit the function that it is in, or define what it is given once, outside."


def eager_findings(builds: Sequence[Built]) -> Iterator[Finding]:
    """Yield what is worth saying of builds of JAX's own functions.

    Small programs are one finding for each caller: the program itself, or a library. A loop or
    branch (`scan`, `while`, `cond`) with functions in it is a finding of its own.
    """
    small: dict[str, list[Built]] = {}
    loops: dict[tuple[str, str, str], list[Built]] = {}
    for built in builds:
        caller, through = caller_of(built), built.function.through
        if through:
            loops.setdefault((built.function.name, through, caller), []).append(built)
        else:
            small.setdefault(caller, []).append(built)
    for (_, _, caller), several in loops.items():
        yield _loop(several, caller)
    for caller, several in small.items():
        yield _small(several, caller)


def caller_of(built: Built) -> str:
    """Return the library that called JAX; empty for the program itself."""
    for frame in reversed(built.frames):
        if frame.origin == "program":
            return ""
        name = texts.package_of(frame.file)
        if name and name not in _PASSING:
            return name
    return ""


def _small(builds: Sequence[Built], caller: str) -> Finding:
    count = sum(built.times("compile") for built in builds)
    names = Counter(built.function.name for built in builds)
    some = ", ".join(f"`{name}`" for name, _ in names.most_common(3))
    some += "…" * (len(names) > 3)
    by = f" by {caller}" if caller else ""
    what = f"{texts.counted(count, 'small program')} outside jit{by}"
    if not count:
        what = f"functions {verb_of(builds)} for others{by}"
    text = f"{what}: JAX's own {some}"
    sites = Counter(filter(None, map(site_text, builds)))
    place = sites.most_common(1)[0][0] if sites else ""
    if place and (caller or len(sites) > 1):
        place = f"{'most ' if len(sites) > 1 else ''}{'called ' if caller else ''}at {place}"
    remedy = _library(builds) if caller else _OWN
    return Finding(seconds_of(builds), text, remedy if count > 1 else "", place)


def _loop(builds: Sequence[Built], caller: str) -> Finding:
    function = builds[0].function
    given = list(dict.fromkeys(_given(function.through, builds[0].process.started.cwd)))
    of = f" of {', '.join(given)}" if given else ""
    by = f" by {caller}" if caller else ""
    done = f"JAX's `{function.name}`{of} was {verb_of(builds)} outside jit{by}"
    objects = {built.line.object for built in builds}
    if len(builds) > 1:
        done += f" {times_text(len(builds))}"
        if len(objects) == len(builds):
            done += ": each time with a new function object"
    remedy = _library(builds) if caller else _LOOPS
    return Finding(seconds_of(builds), done, remedy if len(builds) > 1 else "", places(builds))


def _given(through: str, folder: str) -> Iterator[str]:
    """Yield the functions that a loop was given; JAX's own say nothing and are left out."""
    for given in through.split(", "):
        name, _, place = given.partition(" at ")
        file, _, line = place.rpartition(":")
        if file and not re.search(r"[/\\]jax[/\\]_src[/\\]", file):
            yield f"`{name}` ({texts.place_text(file, int(line) if line.isdigit() else 0, folder)})"


def _library(builds: Sequence[Built]) -> str:
    unwritten = any(one.outcome == "unwritten" for built in builds for one in built.line.requests)
    return f"{_CALL}, or {_KEEP}." if unwritten else f"{_CALL}."
