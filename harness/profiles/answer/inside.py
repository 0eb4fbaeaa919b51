"""What XLA did in the dearest compiles of a program, as `harness profile --inside` recorded it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from harness.profiles.figures import function_key
from harness.profiles.model import Built
from harness.profiles.recorded import Recorded
from harness.program.compiler.inside import Inside, inside
from harness.program.compiler.recording import Untraceable, read
from harness.program.compiler.times import CompileTime, compile_times
from harness.program.compiler.tree import REST
from harness.records.units import seconds_text, share_text
from harness.watch.compile_traces import MADE_SUFFIX, SUFFIX, TEXT_SUFFIX
from harness.watch.programs import INSIDE

MOST_FUNCTIONS = 5
MOST_GROUPS = 4

_MARGIN = " " * 11


class RecordedCompile(NamedTuple):
    """A compile that was recorded, and the build that it was for."""

    path: Path
    """Of XLA's events."""
    built: Built
    cost_s: float
    """What it took to record it."""

    @property
    def name(self) -> str:
        """Return which function was compiled, and where it was called."""
        return f"{self.built.function.name}, {self.built.site}"

    @property
    def text(self) -> str:
        """Return the text of what was compiled, where that was recorded too."""
        return self._beside(TEXT_SUFFIX).decode()

    @property
    def structure(self) -> bytes:
        """Return what a reader made of its jaxpr, where that was recorded too."""
        return self._beside(MADE_SUFFIX)

    def _beside(self, suffix: str) -> bytes:
        file = self.path.with_name(self.path.name.removesuffix(SUFFIX) + suffix)
        return file.read_bytes() if file.exists() else b""

    @property
    def stages_s(self) -> dict[str, float]:
        """Return what its trace and its lower took; nothing where they were done before."""
        found: dict[str, float] = {}
        for span in self.built.line.spans:
            if span.stage != "compile" and span.times:
                took_s = (span.end_ns - span.begin_ns) / 1e9
                found[span.stage] = found.get(span.stage, 0.0) + took_s
        return found


def inside_lines(profile: Recorded) -> Iterator[str]:
    """Yield what XLA did in each function's dearest compile, the dearest function first.

    Nothing where nothing of it was recorded. A line has about 100 characters.
    """
    files = list(recorded(profile))
    if not files:
        return
    cost_s = sum(one.cost_s for one in files)
    yield f"Inside of compiles, by XLA's events ({seconds_text(cost_s)} of compile are for them):"
    for one in dearest(files)[:MOST_FUNCTIONS]:
        try:
            found = inside(read(one.path), "")
        except Untraceable as error:
            yield f"{one.name}: {error}"
            continue
        if found is not None:
            yield f"{seconds_text(found.wall_s):>9}  {one.name}"
            yield from textwrap.wrap(
                _text(found), 100, initial_indent=_MARGIN, subsequent_indent=_MARGIN
            )


def dearest(files: Iterable[RecordedCompile]) -> list[RecordedCompile]:
    """Return each function's dearest compile, the dearest function first."""

    def compile_ns(one: RecordedCompile) -> int:
        spans = one.built.line.spans
        return sum(span.end_ns - span.begin_ns for span in spans if span.stage == "compile")

    found: dict[object, RecordedCompile] = {}
    for one in sorted(files, key=compile_ns, reverse=True):
        found.setdefault(function_key(one.built.function), one)
    return list(found.values())


def recorded(profile: Recorded) -> Iterator[RecordedCompile]:
    """Yield the compiles that were recorded, each with the build that it was for."""
    if profile.folder is None:
        return
    builds: dict[int, list[Built]] = {}
    for built in profile.builds:
        builds.setdefault(built.process.started.pid, []).append(built)
    for path in (profile.folder / INSIDE).glob(f"[0-9]*{SUFFIX}"):
        pid, begin, cost = map(int, path.name.removesuffix(SUFFIX).split("-"))
        around = [
            (span.end_ns - span.begin_ns, number)
            for number, built in enumerate(builds.get(pid, ()))
            for span in built.line.spans
            if span.stage == "compile" and span.begin_ns <= begin <= span.end_ns
        ]
        if around:
            yield RecordedCompile(path, builds[pid][min(around)[1]], cost / 1e9)


def _text(found: Inside) -> str:
    """Return `55 % code generation: LLVM (TaskDispatcher::dispatch), 20 % fusion, ...`."""
    times = compile_times(found)
    named = sorted((one for one in times.groups if one.group != REST), key=lambda one: -one.wall_s)
    told = []
    for one in named[:MOST_GROUPS]:
        own = [each for each in times.passes if (each.group, each.part) == (one.group, one.part)]
        most = max(own, key=lambda each: each.wall_s, default=CompileTime(""))
        name = f": {one.part}" if one.part else ""
        name += f" ({most.name})" if most.wall_s > one.wall_s / 2 else ""
        told.append(f"{share_text(one.wall_s, found.wall_s)} {one.group}{name}")
    return ", ".join(told)
