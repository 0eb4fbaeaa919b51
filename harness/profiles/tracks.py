"""What timeline and trace agree on: names of processes and threads, one clock, names of stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.profiles.names import program_of
from harness.watch.events import Backend, Cleared, Import, Request

if TYPE_CHECKING:
    from harness.profiles.model import Built, Process
    from harness.profiles.recorded import Recorded


class Clock:
    """Nanoseconds since a profile began, whatever machine a process ran on.

    Processes of one machine share a clock. Those of others are placed by the calendar, as exactly
    as the machines' calendars agree.
    """

    def __init__(self, profile: Recorded) -> None:
        self._shifts: dict[str, int] = {}
        for process in profile.processes:
            line = process.started
            self._shifts.setdefault(line.host, round(line.at_s * 1e9) - line.clock_ns)
        first = profile.processes[0].started.host if profile.processes else ""
        base = self._shifts.get(first, 0)
        self._shifts = {host: shift - base for host, shift in self._shifts.items()}
        begins = [self._placed(process, process.begin_ns) for process in profile.processes]
        ends = [self._placed(process, process.end_ns) for process in profile.processes]
        if profile.run is not None:
            begins.append(profile.run.begin_ns)
            ends.append(profile.run.end_ns)
        self.origin_ns = min(begins, default=0)
        self.length_ns = max(max(ends, default=0) - self.origin_ns, 1)
        """From the first to the last thing known."""

    def _placed(self, process: Process, at_ns: int) -> int:
        return at_ns + self._shifts[process.started.host]

    def at(self, process: Process, at_ns: int) -> int:
        """Return a time of a process, in nanoseconds since the profile began."""
        return self._placed(process, at_ns) - self.origin_ns


def process_names(profile: Recorded) -> dict[str, str]:
    """Return what each process is called, by the name of its log: `train.py[4711]`."""
    names: dict[str, str] = {}
    times: Counter[str] = Counter()
    for process in profile.processes:
        line = process.started
        program = program_of(line.argv).removeprefix("-m ")
        name = f"{'python' if program == '' or program.startswith('-') else program}[{line.pid}]"
        times[name] += 1
        # One that another program took the place of (`os.execv`), or that recorded twice.
        names[process.file] = f"{name}#{times[name]}" if times[name] > 1 else name
    return names


def thread_names(process: Process) -> dict[int, str]:
    """Return what each thread is called, by its number: `main`, then in order of appearance."""
    names = {process.started.main_thread: "main"}
    for line in process.lines:
        thread = getattr(line, "thread", None)
        if thread is not None and thread not in names:
            names[thread] = f"thread {len(names)}"
    return names


def starts(process: Process) -> Iterator[tuple[Import | Backend, str, str, dict[str, str]]]:
    """Yield what a process took before it could build: the line, its part, its name, and more."""
    for jax in process.of(Import):
        yield jax, "import", "import jax", jax.versions
    for woken in process.of(Backend):
        about = {"platform": woken.platform, "devices": ", ".join(woken.devices)}
        yield woken, "backend", woken.platform, about


def cleared(process: Process) -> Iterator[tuple[Cleared, str]]:
    """Yield the caches that were emptied and whose, but for what JAX does when Python ends."""
    for line in process.of(Cleared):
        stack, function = process.stacks.get(line.stack), process.functions.get(line.function)
        if stack is not None and stack.frames:
            yield line, function.name if function else line.what


_OUTCOMES = {
    "hit": "hit",
    "written": "miss, written",
    "unwritten": "miss, not written",
    "failed": "failed",
}


def answers(built: Built) -> Iterator[tuple[Request, str]]:
    """Yield the requests that the persistent cache was asked, and what it answered."""
    for request in built.line.requests:
        if request.directory:
            yield request, _OUTCOMES.get(request.outcome, request.outcome)


def answered_ns(built: Built) -> int:
    """Return when the persistent cache had answered, by the process's clock."""
    ends = [span.end_ns for span in built.line.spans if span.stage == "compile"]
    return max(ends, default=built.line.end_ns)


def outcome(built: Built) -> str:
    """Return what the persistent cache said to a build, empty where it was not asked."""
    texts = Counter(text for _, text in answers(built))
    if texts.total() == 1:
        return next(iter(texts))
    return ", ".join(f"{count} × {text}" for text, count in texts.items())


def cause_texts(built: Built, profile: Recorded) -> tuple[str, str]:
    """Return a build's cause and the argument it is about, both empty for an unfinished one."""
    if built.going_on:
        return "", ""
    cause = profile.cause_of(built)
    return cause.kind, cause.argument
