"""Remedies that are tried: the program runs again, and what it builds is counted again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import UsageError
from harness.jaxhooks import programs, remedies
from harness.jaxhooks.events import Function
from harness.jaxhooks.session import SAMPLE_VARIABLE
from harness.measure.child import Child
from harness.profiles.causes.kinds import BLAMELESS, KINDS
from harness.profiles.figures import BuildGroup, function_key, groups, requests_of
from harness.profiles.model import Built, seconds_of
from harness.profiles.names import FILTER_JIT, wrappers
from harness.profiles.recorded import Recorded, read

_ERROR = re.compile(r"[\w.]*(Error|Exception|Exit|Interrupt)\b")
"""Begins the line of a traceback that has what was raised."""


@dataclass(frozen=True)
class AppliedRemedy:
    """What can be tried of a finding."""

    how: str
    """`dynamic`, `strong` or `padded` as of :mod:`harness.jaxhooks.remedies`; or `cache`."""
    function: Function | None
    """Whose builds it is to leave out; None: any."""
    arguments: tuple[str, ...]
    dtypes: tuple[str, ...]
    """Of what is always given one."""
    applied: Mapping[str, Any]
    """What :mod:`harness.jaxhooks.remedies` gets; nothing of the persistent cache."""
    predicted: int
    """Builds that it is to leave out."""
    predicted_s: float
    """Their seconds: what it saves at most, by the answer."""

    @property
    def key(self) -> tuple[object, ...]:
        """What makes it the same one in another run."""
        own = function_key(self.function) if self.function else None
        return self.how, own, self.arguments, self.dtypes


@dataclass(frozen=True)
class Trial:
    """What a remedy saved."""

    remedy: AppliedRemedy
    before: int
    before_s: float
    """Builds of the function as it is, and their seconds; of the cache, programs compiled."""
    after: int = 0
    after_s: float = 0.0
    failed: str = ""
    """Why the program did not come to its usual end with it; empty where it did."""

    @property
    def saved_s(self) -> float:
        """Seconds of building that it saved."""
        return self.before_s - self.after_s


class NotTried(NamedTuple):
    """A cause whose remedy needs an edit; without a function the persistent cache, which is on."""

    kind: str = ""
    argument: str = ""
    function: Function | None = None


def of(profile: Recorded) -> tuple[list[AppliedRemedy], list[NotTried]]:
    """Return what can be tried without an edit of the program, the slowest first, and what not.

    The persistent cache comes last: what it saves, the others save in part.
    """
    applied: dict[tuple[object, ...], AppliedRemedy] = {}
    left_out: dict[tuple[object, ...], dict[tuple[str, int], Built]] = {}
    left = []
    for group in groups(profile, [built for built in profile.builds if not built.eager]):
        cause = group.cause
        if cause.kind in BLAMELESS or not cause.remedy:
            continue
        one = _applied(profile, group)
        if one is None:
            left.append(NotTried(cause.kind, cause.argument, group.function))
            continue
        remedy, builds = one
        several = left_out.setdefault(remedy.key, {})
        several.update((built.key, built) for built in builds)
        seconds = seconds_of(several.values())
        applied[remedy.key] = replace(remedy, predicted=len(several), predicted_s=seconds)
    slowest = sorted(applied.values(), key=lambda remedy: -remedy.predicted_s)
    if any(request.outcome in ("hit", "written") for request in requests_of(profile.builds)):
        left.append(NotTried())
    elif compiled := sum(built.compiles for built in profile.builds):
        seconds = sum(built.stage_ns("compile") for built in profile.builds) / 1e9
        slowest.append(AppliedRemedy("cache", None, (), (), {}, compiled, seconds))
    return slowest, left


def _applied(profile: Recorded, group: BuildGroup) -> tuple[AppliedRemedy, Sequence[Built]] | None:
    function = group.function
    mine = function.file and FILTER_JIT not in wrappers(function)  # that jits its own
    trial = KINDS[group.cause.kind].tried if mine else None
    tried = trial(group.cause, _of_function(profile, function_key(function))) if trial else None
    if tried is None:
        return None
    leaves = tried.applied.get("leaves", {})
    arguments = tuple(leaves) or (tried.applied["argument"],)
    how = tried.applied["how"]
    dtypes = tuple(sorted(set(leaves.values()))) if how == "strong" else ()
    applied = {**tried.applied, "file": function.file, "line": function.line}
    builds = group.builds if tried.left_out is None else tried.left_out
    return AppliedRemedy(how, function, arguments, dtypes, applied, 0, 0.0), builds


def run(profile: Recorded, tried: Sequence[AppliedRemedy], folder: Path) -> Iterator[Trial]:
    """Run the program as it is, then once with each remedy; yield what each saved.

    With the persistent cache it runs twice, and the second time counts.

    Args:
        profile: of a command, whose folder and arguments are taken.
        tried: of :func:`of`.
        folder: an empty one, for profiles and the program's output.

    Raises:
        UsageError: if the profile is of no command, or the program fails as it is.
    """
    if profile.run is None or not profile.processes:
        raise UsageError(
            "This profile is of no command, which could run again. Record one with "
            "`harness profile -o FOLDER -- PROGRAM`."
        )
    usual, last = _ran(profile, folder / "as-it-is", {})
    if usual is None:
        raise UsageError(f"The program fails as it is: {last}")
    again = {remedy.key: remedy for remedy in of(usual)[0]}  # under the load of now
    for number, remedy in enumerate((again.get(one.key, one) for one in tried), 1):
        variables = {remedies.VARIABLE: json.dumps([dict(remedy.applied)])}
        if remedy.function is None:
            variables = {
                "JAX_COMPILATION_CACHE_DIR": str(folder.resolve() / "cache"),
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            }
            _ran(profile, folder / "cold", variables)
        changed, last = _ran(profile, folder / f"remedy-{number}", variables)
        before = _counted(usual, remedy)
        if changed is None:
            yield Trial(remedy, *before, failed=last)
        else:
            yield Trial(remedy, *before, *_counted(changed, remedy))


def _counted(profile: Recorded, remedy: AppliedRemedy) -> tuple[int, float]:
    if remedy.function is None:
        return sum(built.compiles for built in profile.builds), seconds_of(profile.builds)
    builds = _of_function(profile, function_key(remedy.function))
    return len(builds), seconds_of(builds)


def _of_function(profile: Recorded, key: tuple[object, ...]) -> list[Built]:
    return [built for built in profile.builds if function_key(built.function) == key]


def _ran(
    profile: Recorded, folder: Path, variables: Mapping[str, str]
) -> tuple[Recorded | None, str]:
    """Return the profile of the program that ran again; None, and its last words, if it failed."""
    assert profile.run is not None
    folder.mkdir(parents=True)
    there = programs.environment(os.environ, HARNESS_PROFILE=str(folder.resolve()), **variables)
    there[SAMPLE_VARIABLE] = "0"
    where = Path(profile.processes[0].started.cwd)
    with Child(profile.run.command, there, cwd=where) as child:
        code = child.wait()
    if code != (profile.run.exit_code or 0):
        errors = [line for line in child.output if _ERROR.match(line)]
        return None, (errors or child.output or [child.how])[-1].strip()
    return read(folder), ""
