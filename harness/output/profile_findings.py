"""The words of what matters in a profile: a text, a remedy and a place for each finding."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from harness.jaxhooks.events import Function
from harness.output.profile_causes import several_text
from harness.output.profile_remedies import remedy_text
from harness.profiles.finding import Finding, Kind
from harness.profiles.findings import findings
from harness.profiles.names import Names, line_text
from harness.records.units import counted, seconds_text, some, times_text

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded


class FindingText(NamedTuple):
    """A finding in words."""

    finding: Finding
    text: str
    remedy: str = ""
    place: str = ""

    @property
    def seconds(self) -> float:
        """What its builds took."""
        return self.finding.seconds


def finding_texts(profile: Recorded, muted: Sequence[str] = ()) -> list[FindingText]:
    """Return what is worth saying of a profile's builds, the slowest first.

    Args:
        profile: what was recorded.
        muted: identifiers of remedies; findings that have one of them are left out.
    """
    words = _Words(profile)
    return [words.of(one) for one in findings(profile) if not is_muted(one, muted)]


def is_muted(finding: Finding, muted: Sequence[str]) -> bool:
    """Return whether a finding has a remedy that nobody wants to read."""
    return finding.remedy is not None and finding.remedy.id in muted


class _Words:
    """What all findings of a profile share: what its functions and its program are called."""

    def __init__(self, profile: Recorded) -> None:
        self._names = Names(built.function for built in (*profile.builds, *profile.unfinished))
        self._templates: Mapping[Kind, Callable[[Finding], str]] = {
            "unfinished": self._unfinished,
            "uncalled": self._uncalled,
            "ahead": self._ahead,
            "again": self._again,
            "first": self._first,
            "firsts": self._firsts,
            "shard_map": self._shard_map,
            "large": self._large,
            "small": self._small,
            "loop": self._loop,
        }
        first, *rest = profile.command if profile.run is not None else ("PROGRAM",)
        self._program = shlex.join([PurePath(first).name, *rest])

    def of(self, finding: Finding) -> FindingText:
        text = self._templates[finding.kind](finding)
        remedy = remedy_text(finding.remedy, self._program)
        if finding.sizes:
            sizes = f"Built again for other shapes, up to {finding.sizes} at one call."
            remedy = f"{sizes} {remedy}".rstrip()
        return FindingText(finding, text, remedy, _place(finding))

    def _unfinished(self, finding: Finding) -> str:
        where = f"in its {finding.stage}" if finding.stage else "while it is called"
        return f"{self._names.of(finding.function)} never ended: the log stops {where}"

    def _uncalled(self, finding: Finding) -> str:
        name = self._names.of(finding.function)
        return f"{name} was {_times(finding)} ahead of time, and never called"

    def _ahead(self, finding: Finding) -> str:
        names = list(dict.fromkeys(map(self._names.of, finding.functions)))
        programs = f"{counted(finding.count, 'program')} ({_some(names)})"
        saves = seconds_text(finding.stage_s)
        return (
            f"{programs} compiled ahead of time one after another: in threads at most {saves} less"
        )

    def _again(self, finding: Finding) -> str:
        cause, built = finding.cause, finding.built
        assert cause is not None
        assert built is not None
        name, times = self._names.of(finding.function), times_text(finding.count)
        if cause.kind == "raised":
            text = f"{name} raised {cause.after} {times}, and nothing was built"
        else:
            why = several_text(cause, built, len(finding.builds), finding.values)
            text = f"{name} was {_times(finding, ' more')}: {why}"
        if finding.others:
            arguments = some([f"`{argument}`" for argument, _ in finding.others], 2)
            count = sum(count for _, count in finding.others)
            text += f"; and {times_text(count)} for {arguments}"
        if finding.kernel is not None:
            text += (
                f"; {seconds_text(finding.kernel.ns / 1e9)} of it is its __eq__: jax 0.10 compares "
                "each new value with all earlier ones (0.11 does not)"
            )
        return text

    def _first(self, finding: Finding) -> str:
        how = "First build" if finding.count == 1 else f"{finding.count:,} first builds"
        if finding.cause is not None and finding.cause.kind == "ahead of time":
            how = counted(finding.count, "build") + " ahead of time"
        processes = len({built.process.name for built in finding.builds})
        name = self._names.of(finding.function)
        name += f" in {processes} processes" * (processes > 1)
        text = f"{how} of {name}: {seconds_text(finding.stage_s)} of it is {finding.stage}"
        if finding.kernel is not None:
            one, seconds = finding.kernel, seconds_text(finding.kernel.ns / 1e9)
            text += f", {seconds} of that `{one.function}` ({line_text(one.file, one.line)})"
        return text + _promoted(finding, "is")

    def _firsts(self, finding: Finding) -> str:
        names = list(dict.fromkeys(map(self._names.of, finding.functions)))
        return f"{counted(finding.count, 'first build')} ({_some(names)})"

    def _shard_map(self, finding: Finding) -> str:
        programs = counted(finding.count, "small program")
        return f"{programs} of a shard_map outside jit, built again at every call"

    def _large(self, finding: Finding) -> str:
        name, times = finding.function.name, f" {times_text(finding.count)}" * (finding.count > 1)
        return f"JAX's `{name}` was {finding.reached} outside jit{_by(finding)}{times}"

    def _small(self, finding: Finding) -> str:
        when = {
            "traced": " while others are traced",
            "imported": " while it is imported",
            "disabled": " while jit is disabled",
        }
        by = _by(finding) + when.get(finding.when, "")
        what = f"{counted(finding.count, 'small program')} outside jit{by}"
        if not finding.count:
            what = f"functions {finding.reached} for others{by}"
        return f"{what}: JAX's own {_some([f'`{one.name}`' for one in finding.functions])}"

    def _loop(self, finding: Finding) -> str:
        assert finding.built is not None
        folder = finding.built.process.started.cwd
        given = list(dict.fromkeys(_given(finding.function, folder)))
        of = f" of {some(given, 1)}" if given else ""
        done: str = finding.reached
        times = f" {times_text(finding.count)}" * (finding.count > 1)
        if finding.reached == "compiled" and finding.loaded:
            done, times = _times(finding), ""
        text = f"JAX's `{finding.function.name}`{of} was {done} outside jit{_by(finding)}{times}"
        text += ": each time with a new function object" * finding.recreated
        return text + _promoted(finding, "more was")


def _promoted(finding: Finding, verb: str) -> str:
    if finding.promoted is None:
        return ""
    loop, seconds = finding.promoted, seconds_text(finding.promoted.ns / 1e9)
    values = f" ({counted(loop.values, 'value')})" if loop.values > 1 else ""
    place = line_text(loop.file, loop.line, finding.builds[0].process.started.cwd)
    return (
        f"; {seconds} {verb} a second trace of the body of the {loop.loop} at {place}: its carry "
        f"begins as weakly typed {loop.before} and comes back as {loop.after}{values}"
    )


def _by(finding: Finding) -> str:
    within = f" ({finding.within})" if finding.within else ""
    return f" by {finding.caller}{within}" if finding.caller else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + "…" * (len(names) > 3)


def _times(finding: Finding, more: str = "") -> str:
    """Return what was done how often: `compiled 3 times more`, `compiled once and loaded twice`."""
    count, loaded = finding.count, finding.loaded
    if finding.reached != "compiled" or not loaded:
        return f"{finding.reached} {times_text(count)}{more}"
    return f"compiled {times_text(count - loaded)} and loaded {times_text(loaded)}{more}"


def _place(finding: Finding) -> str:
    sites, caller = finding.sites, finding.caller
    if not sites:
        return ""
    if finding.kind == "small":
        if not caller and len(sites) == 1:
            return sites[0]
        return f"{'most ' if len(sites) > 1 else ''}{'called ' if caller else ''}at {sites[0]}"
    return f"{sites[0]} and {len(sites) - 1} more" if len(sites) > 1 else sites[0]


def _given(function: Function, folder: str) -> Iterator[str]:
    for one in function.around:
        if one.file:
            yield f"`{one.name}` ({line_text(one.file, one.line, folder)})"
