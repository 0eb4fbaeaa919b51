"""The slowest compiles of a program whose insides `harness profile --inside` recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.jaxhooks.compile_traces import MADE_SUFFIX, MODULE_SUFFIX, SUFFIX, TEXT_SUFFIX
from harness.jaxhooks.programs import INSIDE
from harness.profiles.figures import function_key
from harness.profiles.model import Built

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded


class RecordedCompile(NamedTuple):
    """A compile that was recorded, and the build that it was for."""

    path: Path
    built: Built
    cost_s: float

    @property
    def name(self) -> str:
        """Return which function was compiled, and where it was called."""
        return f"{self.built.function.name}, {self.built.site}"

    @property
    def text(self) -> str:
        """Return the text of what was compiled, where that was recorded too."""
        return self._beside(TEXT_SUFFIX).decode()

    @property
    def module(self) -> str:
        """Return the StableHLO of what was compiled, where that was recorded too."""
        return self._beside(MODULE_SUFFIX).decode()

    @property
    def structure(self) -> bytes:
        """Return what a reader made of its jaxpr, where that was recorded too."""
        return self._beside(MADE_SUFFIX)

    def _beside(self, suffix: str) -> bytes:
        file = self.path.with_name(self.path.name.removesuffix(SUFFIX) + suffix)
        return file.read_bytes() if file.exists() else b""

    @property
    def failures(self) -> tuple[str, ...]:
        """Return what failed in the process that compiled it, while that was recorded."""
        ended = self.built.process.ended
        return ended.failures if ended is not None else ()

    @property
    def stages_s(self) -> dict[str, float]:
        """Return what its trace and its lower took; nothing where they were done before."""
        seconds: dict[str, float] = {}
        for span in self.built.line.spans:
            if span.stage != "compile" and span.times:
                took_s = (span.end_ns - span.begin_ns) / 1e9
                seconds[span.stage] = seconds.get(span.stage, 0.0) + took_s
        return seconds


def slowest_compiles(files: Iterable[RecordedCompile]) -> list[RecordedCompile]:
    """Return each function's slowest compile, the slowest function first."""

    def compile_ns(one: RecordedCompile) -> int:
        spans = one.built.line.spans
        return sum(span.end_ns - span.begin_ns for span in spans if span.stage == "compile")

    slowest: dict[object, RecordedCompile] = {}
    for one in sorted(files, key=compile_ns, reverse=True):
        slowest.setdefault(function_key(one.built.function), one)
    return list(slowest.values())


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
