"""Remedies that are tried: the program runs again, and what it builds is counted again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.engine.child import Child
from harness.errors import UsageError
from harness.profiles.causes.cause import ChangeKind
from harness.profiles.causes.registry import BLAMELESS, KINDS
from harness.profiles.causes.words import FILTER_JIT
from harness.profiles.figures import function_key, groups, requests_of
from harness.profiles.model import Built, seconds_of
from harness.profiles.names import Names
from harness.profiles.recorded import Recorded, read
from harness.watch import programs, remedies
from harness.watch.session import SAMPLE_VARIABLE

_CACHE = "the persistent cache, from the second run on"

_ERROR = re.compile(r"[\w.]*(Error|Exception|Exit|Interrupt)\b")
"""Begins the line of a traceback that says what was raised."""


@dataclass(frozen=True)
class AppliedRemedy:
    """What can be tried of a finding."""

    name: str
    """In words: `steps` of `relax` as a dynamic argument."""
    function: tuple[str, str, int, str] | None
    """Whose builds it is to leave out: its name, file, line, and what is around it; None: any."""
    told: Mapping[str, Any]
    """What :mod:`harness.watch.remedies` is told; nothing of the persistent cache."""
    predicted: int
    """Builds that it is to leave out."""
    predicted_s: float
    """Their seconds: what the answer says that mending it saves at most."""


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


def of(profile: Recorded) -> tuple[list[AppliedRemedy], list[str]]:
    """Return what can be tried without an edit of the program, the dearest first, and what not.

    The persistent cache comes last: what it saves, the others save in part.
    """
    names = Names(built.function for built in profile.builds)
    found: dict[str, AppliedRemedy] = {}
    mended: dict[str, dict[tuple[str, int], Built]] = {}
    left = []
    for group in groups(profile, [built for built in profile.builds if not built.eager]):
        kind = KINDS[group.cause.kind]
        if group.cause.kind in BLAMELESS or not group.cause.remedy:
            continue
        name = names.of(group.function)
        key = function_key(group.function)
        mine = group.function.file and group.function.through != FILTER_JIT  # jits its own
        trial = kind.tried if isinstance(kind, ChangeKind) and mine else None
        tried = trial(group.cause, _of_function(profile, key)) if trial else None
        if tried is None:
            argument = f"`{group.cause.argument}` of " if group.cause.argument else ""
            left.append(f"{kind.name} of {argument}{name}")
            continue
        told = {**tried.told, "file": group.function.file, "line": group.function.line}
        builds = group.builds if tried.left_out is None else tried.left_out
        words = tried.words.format(name=name)
        several = mended.setdefault(words, {})
        several.update((built.key, built) for built in builds)
        seconds = seconds_of(several.values())
        found[words] = AppliedRemedy(words, key, told, len(several), seconds)
    dearest = sorted(found.values(), key=lambda remedy: -remedy.predicted_s)
    if any(request.outcome in ("hit", "written") for request in requests_of(profile.builds)):
        left.append("the persistent cache, which the program has")
    elif compiled := sum(built.compiles for built in profile.builds):
        seconds = sum(built.stage_ns("compile") for built in profile.builds) / 1e9
        dearest.append(AppliedRemedy(_CACHE, None, {}, compiled, seconds))
    return dearest, left


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
    usual, said = _ran(profile, folder / "as-it-is", {})
    if usual is None:
        raise UsageError(f"The program fails as it is: {said}")
    again = {remedy.name: remedy for remedy in of(usual)[0]}  # under the load of now
    for number, remedy in enumerate((again.get(one.name, one) for one in tried), 1):
        variables = {remedies.VARIABLE: json.dumps([dict(remedy.told)])}
        if remedy.function is None:
            variables = {
                "JAX_COMPILATION_CACHE_DIR": str(folder.resolve() / "cache"),
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            }
            _ran(profile, folder / "cold", variables)
        changed, said = _ran(profile, folder / f"remedy-{number}", variables)
        before = _counted(usual, remedy)
        if changed is None:
            yield Trial(remedy, *before, failed=said)
        else:
            yield Trial(remedy, *before, *_counted(changed, remedy))


def _counted(profile: Recorded, remedy: AppliedRemedy) -> tuple[int, float]:
    if remedy.function is None:
        return sum(built.compiles for built in profile.builds), seconds_of(profile.builds)
    builds = _of_function(profile, remedy.function)
    return len(builds), seconds_of(builds)


def _of_function(profile: Recorded, key: tuple[str, str, int, str]) -> list[Built]:
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
