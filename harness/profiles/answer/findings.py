"""What matters in a profile, in words: each function's builds by cause, the dearest first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from harness.profiles import texts
from harness.profiles.answer.eager import eager_findings
from harness.profiles.answer.finding import Finding, places, seconds_of, times_text, verb_of
from harness.profiles.answer.grouping import (
    FIRST,
    Group,
    function_key,
    groups,
    is_eager,
    site_text,
)
from harness.profiles.model import Built, Profile
from harness.profiles.totals.pieces import STAGES
from harness.watch.events import Function

_APART = ("static value", "pytree")
"""Causes that are mended in another place for each argument; others are one finding."""

_DEAR = 0.1
"""Share of all that was built from which a first build is told of by itself."""


def findings(profile: Profile) -> list[Finding]:
    """Return what is worth saying of a profile's builds, the dearest first.

    Their seconds add up to those of all builds.
    """
    found = [_unfinished(built) for built in profile.unfinished]
    names = Names(built.function for built in (*profile.builds, *profile.unfinished))
    dear = _DEAR * seconds_of(profile.builds)
    again: dict[tuple[object, ...], list[Group]] = {}
    small: list[Group] = []
    for group in groups(profile, [built for built in profile.builds if not is_eager(built)]):
        if group.cause.kind not in FIRST:
            apart = group.cause.argument if group.cause.kind in _APART else ""
            key = (function_key(group.function), group.cause.kind, apart)
            again.setdefault(key, []).append(group)
        elif group.seconds >= dear:
            found.append(_first(group, names))
        else:
            small.append(group)
    found += [_again(several, names) for several in again.values()]
    if len(small) == 1:
        found.append(_first(small[0], names))
    elif small:
        found.append(_firsts(small, names))
    found += eager_findings([built for built in profile.builds if is_eager(built)])
    return sorted(found, key=lambda finding: -finding.seconds)


class Names:
    """What functions are called: by their line as well, where a name alone does not tell."""

    def __init__(self, functions: Iterable[Function]) -> None:
        places: dict[str, set[tuple[str, int]]] = {}
        for function in functions:
            places.setdefault(function.name, set()).add((function.file, function.line))
        self._same = {name for name, several in places.items() if len(several) > 1}

    def of(self, built: Built) -> str:
        """Return a function as it stands in a text: `grad(loss)`, `<lambda>` (train.py:52)."""
        function = built.function
        text = f"`{texts.function_text(function)}`"
        if function.origin == "library" and (package := texts.package_of(function.file)):
            text = f"{package}'s {text}"
        if function.file and (function.name in self._same or not function.name.isidentifier()):
            text += f" ({PurePath(function.file).name}:{function.line})"
        return text


def _again(several: Sequence[Group], names: Names) -> Finding:
    """Return what to say of builds of one function with one kind of cause, by argument."""
    builds = [built for group in several for built in group.builds]
    dearest = several[0]
    text = f"{names.of(builds[0])} was {verb_of(builds)} {times_text(len(builds))} more"
    text += f": {_why(dearest)}"
    if dearest.cause.kind == "raised":
        times = times_text(len(builds))
        text = f"{names.of(builds[0])} raised {dearest.cause.after} {times}, and nothing was built"
    if others := several[1:]:
        some = ", ".join(f"`{group.cause.argument}`" for group in others[:2])
        count = sum(len(group.builds) for group in others)
        rest = f" and {len(others) - 2} more" if len(others) > 2 else ""
        text += f"; and {times_text(count)} for {some}{rest}"
    return Finding(seconds_of(builds), text, dearest.cause.remedy, places(builds))


def _why(group: Group) -> str:
    cause, n, values = group.cause, len(group.builds), len(group.values)
    what = f"`{cause.argument}`" if cause.argument else "its arguments"
    if cause.kind == "unexplained":
        return _clause(cause.sentence) or "the profile cannot say why"
    one = _clause(cause.sentence) or f"{cause.kind} of {what}"
    if n == 1:
        return one
    several = {
        "static value": f"{what} is static and took {values} values",
        "shape": f"{what} had {values} shapes",
        "dtype": f"{what} had {values} dtypes",
        "pytree": f"{values} structures of {what}",
        "new function object": "each time another function object of the same source line",
        "cache cleared": "JAX's caches were cleared in between",
    }
    few = values < 2 and cause.kind not in ("new function object", "cache cleared")
    return one if few or cause.kind not in several else several[cause.kind]


def _clause(sentence: str) -> str:
    """Return the first thing that a sentence says, as it stands after a colon."""
    sentence = re.sub(r"^`[^`]*` had been built for these arguments[;,] (?:but )?", "", sentence)
    sentence = re.split(r"\. (?:Also:|The same for )", sentence, maxsplit=1)[0]
    if sentence.partition(" ")[0].istitle():
        sentence = sentence[0].lower() + sentence[1:]
    return sentence.rstrip(".")


def _first(group: Group, names: Names) -> Finding:
    stages = {stage: sum(built.stage_ns(stage) for built in group.builds) / 1e9 for stage in STAGES}
    stage, seconds = max(stages.items(), key=lambda item: item[1])
    count = len(group.builds)
    how = "First build" if count == 1 else f"{count:,} first builds"
    if group.cause.kind == "ahead of time":
        how = texts.counted(count, "build") + " ahead of time"
    name = names.of(group.builds[0])
    text = f"{how} of {name}: {texts.duration_text(seconds)} of it is {stage}"
    return Finding(group.seconds, text, "", places(group.builds))


def _firsts(several: Sequence[Group], names: Names) -> Finding:
    builds = [built for group in several for built in group.builds]
    called = list(dict.fromkeys(names.of(group.builds[0]) for group in several))
    some = ", ".join(called[:3]) + "…" * (len(called) > 3)
    text = f"{texts.counted(len(builds), 'first build')} ({some})"
    return Finding(seconds_of(builds), text)


def _unfinished(built: Built) -> Finding:
    seconds = (built.line.end_ns - built.line.begin_ns) / 1e9
    where = f"in its {built.line.spans[-1].stage}" if built.line.spans else "while it is called"
    name = texts.function_text(built.function)
    return Finding(seconds, f"`{name}` never ended: the log stops {where}", "", site_text(built))


def shares(profile: Profile) -> dict[str, float]:
    """Return what builds took, added up.

    Returns:
        Seconds of `again` (with a remedy), `other` (again, and nothing to be done), `unexplained`,
        `first` and `eager` builds.
    """
    found = dict.fromkeys(("again", "other", "unexplained", "first", "eager"), 0.0)
    for built in profile.builds:
        cause = profile.cause_of(built)
        if is_eager(built):
            what = "eager"
        elif cause.kind in FIRST:
            what = "first"
        elif cause.kind == "unexplained":
            what = "unexplained"
        else:
            what = "again" if cause.remedy else "other"
        found[what] += built.build_ns / 1e9
    return found
